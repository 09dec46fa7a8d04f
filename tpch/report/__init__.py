"""The page of plots: one file of HTML that holds its data and its JavaScript, and fetches nothing.

`series` sorts samples into what is drawn as one colour, `charts` makes Vega-Lite plots of them, `page` puts these between
tables and a block on the machine.
"""
