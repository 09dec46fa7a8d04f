"""What the page of EXPLAIN looks like, and the little that it does."""

from __future__ import annotations

_HUES = (212, 152, 30, 268, 340, 188, 90, 8, 55, 300, 120, 235)  # of stages, in turn

STYLE = """
:root { color-scheme: light dark; --text: #1c2430; --quiet: #5b6675; --line: #d5dbe3; --page: #fff; --card: #f7f9fb;
  --light: 94%; --strong: 42% }
@media (prefers-color-scheme: dark) { :root { --text: #e4e9f0; --quiet: #9aa7b8; --line: #3a4452; --page: #14181d;
  --card: #1c222a; --light: 22%; --strong: 58% } }
body { font: 14px/1.45 system-ui, sans-serif; color: var(--text); background: var(--page); max-width: 1100px;
  margin: 1.5rem auto; padding: 0 1rem }
h1 { font-size: 1.3rem } h2 { font-size: 1.1rem; margin-top: 1.6rem } h3 { font-size: 1rem; margin: 0 0 .3rem }
h4 { font-size: .9rem; margin: .6rem 0 .2rem }
pre, code { font: 12.5px/1.45 ui-monospace, monospace }
pre { background: var(--card); border: 1px solid var(--line); border-radius: 6px; padding: .6rem .8rem; overflow: auto }
.sql { white-space: pre-wrap; max-height: 16rem }
.hint, .where, .rows { color: var(--quiet); margin: .1rem 0; fill: var(--quiet) }
.plan { overflow: auto; border: 1px solid var(--line); border-radius: 6px }
dl { display: flex; flex-wrap: wrap; gap: .2rem 1.4rem; margin: .2rem 0 } dl div { display: flex; gap: .4rem }
dt { color: var(--quiet) } dd { margin: 0; font-variant-numeric: tabular-nums }
.totals dd { font-weight: 600 }
.node { cursor: pointer } .node rect { fill: var(--card); stroke: var(--line) }
.node text { font-size: 12px; fill: var(--text) } .node .name { font-weight: 600 }
.node text.rows { fill: var(--quiet); font-size: 11.5px }
.edge { fill: none; stroke: var(--quiet); stroke-opacity: .45 }
.stage { background: var(--card); border: 1px solid var(--line); border-left: 5px solid; border-radius: 6px;
  padding: .7rem .9rem; margin: .7rem 0 }
.stage:target, .stage.shown { outline: 2px solid var(--quiet) }
ol { margin: .4rem 0 .4rem 1.2rem; padding: 0 }
.bar { display: flex; align-items: center; gap: .6rem; margin: .15rem 0 }
.track { flex: 0 0 320px; max-width: 50%; height: 12px; border-radius: 3px; background: var(--line); overflow: hidden }
.bar i { display: block; height: 100%; background: hsl(212 60% var(--strong)) }
.bandwidth i { background: hsl(152 55% var(--strong)) }
.what { flex: 0 0 5.5rem; color: var(--quiet) }
.bar b { font-weight: 500; font-variant-numeric: tabular-nums }
summary { cursor: pointer; color: hsl(212 70% var(--strong)) }
""" + "\n".join(
    f".node.c{n} rect {{ fill: hsl({hue} 60% var(--light)); stroke: hsl({hue} 45% var(--strong)) }}\n"
    f".stage.c{n} {{ border-left-color: hsl({hue} 45% var(--strong)) }}"
    for n, hue in enumerate(_HUES)
)

SCRIPT = """
for (const node of document.querySelectorAll('[data-stage]')) {
  const open = () => {
    document.querySelectorAll('.stage.shown').forEach(s => s.classList.remove('shown'));
    const stage = document.getElementById('stage' + node.dataset.stage);
    stage.classList.add('shown');
    stage.querySelectorAll('details').forEach(d => { d.open = true; });
    stage.scrollIntoView({block: 'nearest'});
  };
  node.addEventListener('click', open);
  node.addEventListener('keydown', e => { if (e.key === 'Enter') open(); });
}
"""
