"""What the page looks like."""

STYLE = """
:root { --text: #1c2430; --quiet: #5b6675; --line: #d5dbe3; --card: #f7f9fb; --own: #0b7a75 }
body { font: 14px/1.45 system-ui, sans-serif; color: var(--text); background: #fff; max-width: 1120px;
  margin: 1.5rem auto; padding: 0 1rem }
h1 { font-size: 1.5rem; margin-bottom: .2rem } h2 { font-size: 1.2rem; margin: 2rem 0 .6rem;
  border-top: 1px solid var(--line); padding-top: 1rem } h3 { font-size: 1rem; margin: 1rem 0 .4rem }
.note { color: var(--quiet); margin: .2rem 0 }
.tiles { display: flex; flex-wrap: wrap; gap: .8rem; margin: .6rem 0 1rem }
.tile { flex: 1 1 240px; border: 1px solid var(--line); border-top: 4px solid var(--line); border-radius: 6px;
  padding: .5rem .8rem; background: var(--card) }
.tile.own { border-top-color: var(--own) }
.tile h3 { margin: 0 } .tile p { color: var(--quiet); margin: 0 0 .3rem; font-size: 12.5px }
dl { margin: 0 } dl div { display: flex; gap: .5rem; justify-content: space-between }
dt { color: var(--quiet) } dd { margin: 0; font-variant-numeric: tabular-nums; text-align: right }
.machine { display: flex; flex-wrap: wrap; gap: .1rem 1.6rem; margin: .4rem 0 } .machine div { justify-content: start }
.plot { margin: .8rem 0; overflow-x: auto }
.grid { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px }
th { text-align: right; vertical-align: bottom; font-weight: 600; border-bottom: 2px solid var(--line); max-width: 8rem }
th, td { padding: .15rem .7rem } td { text-align: right; border-bottom: 1px solid #eef1f5 }
th:first-child, td:first-child { text-align: left } tr:nth-last-child(-n+2) td { font-weight: 600 }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: .6rem .8rem; overflow: auto;
  font: 12.5px/1.5 ui-monospace, monospace }
"""
