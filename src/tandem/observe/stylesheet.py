"""The stylesheet of all pages: light and dark, from a phone to a wide screen."""

__all__ = ["STYLESHEET"]

STYLESHEET = """
:root {
  color-scheme: light dark;
  --page: #ffffff; --card: #f5f6f7; --ink: #1b1f23; --soft: #57606a; --rule: #d8dce0;
  --source: #2478b8; --target: #c96a00; --chip: #dcebf7; --chip-other: #fbe6d0;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171a; --card: #1e2328; --ink: #e6e9ec; --soft: #a3adb7; --rule: #3a424a;
    --source: #6cb2ea; --target: #f0a049; --chip: #1f3b52; --chip-other: #4a3116;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0 auto; max-width: 60rem; padding: 1.5rem 1rem 3rem; background: var(--page); color: var(--ink);
  font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere;
}
h1 { font-size: 1.6rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 { font-size: 1.15rem; margin: 2.25rem 0 .5rem; }
.eyebrow, .note, figcaption, footer { color: var(--soft); font-size: .875rem; }
.eyebrow { margin: 0 0 .25rem; }
.answer { font-size: 1.15rem; margin: 0 0 1.25rem; }
.note { margin: .4rem 0; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); gap: .75rem; margin: 0; }
.tiles > div { background: var(--card); border-radius: .5rem; padding: .75rem 1rem; }
.tiles dt { color: var(--soft); font-size: .875rem; }
.tiles dd { margin: 0; }
.tiles dd:nth-of-type(1) { font-size: 1.5rem; font-weight: 600; font-variant-numeric: tabular-nums; }
.tiles dd:nth-of-type(2) { color: var(--soft); font-size: .8125rem; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9375rem; overflow-wrap: normal; }
th, td { padding: .35rem .75rem .35rem 0; border-bottom: 1px solid var(--rule); }
th, td { text-align: left; vertical-align: top; }
th { color: var(--soft); font-weight: 500; font-size: .8125rem; vertical-align: bottom; }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th.number { white-space: normal; }
figure { margin: .5rem 0 0; }
[data-figure] { min-height: 5rem; }
summary { cursor: pointer; padding: .3rem 0; }
:focus-visible { outline: 2px solid var(--source); outline-offset: 2px; border-radius: 2px; }
figure summary, .files summary { color: var(--soft); font-size: .875rem; }
figure details p, .what p, .what ul { margin: .2rem 0 .6rem; color: var(--soft); font-size: .875rem; max-width: 44rem; }
.what summary { color: var(--soft); font-size: .875rem; }
h2 + .what { margin: -.35rem 0 .35rem; }
.what ul { padding-left: 1.25rem; }
.what h3, .help h4 { color: var(--soft); font-size: .875rem; margin: .75rem 0 .2rem; }
.what h3 .note, .help h4 .note { font-weight: 400; }
.what code { color: var(--ink); font-weight: 600; }
.reasons > details { border-bottom: 1px solid var(--rule); }
.reasons summary { display: flex; gap: 1rem; align-items: baseline; font-size: .9375rem; }
.reasons summary::before { content: "▸"; color: var(--soft); }
.reasons [open] > summary::before { content: "▾"; }
.reasons summary .name { flex: 1; }
.reasons summary .number { min-width: 4rem; }
.pair { border-left: 3px solid var(--rule); padding-left: .75rem; margin: .5rem 0 1rem; }
.pair p { margin: .15rem 0; }
.side { color: var(--soft); font-size: .75rem; margin-right: .5rem; }
.source .side { color: var(--source); }
.target .side { color: var(--target); }
.word { display: inline-block; margin: .1rem .5rem .1rem 0; }
.chip { background: var(--chip); padding: .05rem .2rem; border-radius: .2rem; white-space: pre-wrap; }
.target .chip { background: var(--chip-other); }
.chip + .chip { margin-left: 1px; border-top-left-radius: 0; border-bottom-left-radius: 0; }
.chip:not(:last-child) { border-top-right-radius: 0; border-bottom-right-radius: 0; }
nav ol { list-style: none; margin: 1rem 0 0; padding: 0; border-top: 1px solid var(--rule); }
nav a {
  display: grid; grid-template-columns: 1.5rem 7.5rem 1fr; gap: 0 1rem; padding: .4rem .25rem;
  border-bottom: 1px solid var(--rule); color: var(--ink); text-decoration: none;
}
nav a:hover { background: var(--card); }
nav .glance { grid-column: 3; color: var(--soft); font-size: .875rem; }
a { color: var(--source); }
nav .place { color: var(--soft); text-align: right; }
.verdict { font-weight: 600; white-space: nowrap; }
.finding { border-top: 3px solid var(--rule); margin-top: 2rem; }
.finding > h2 { margin-top: .75rem; }
.finding > .answer { margin-bottom: .5rem; max-width: 46rem; }
.ruling { margin: 0 0 .35rem; }
.ruling .verdict { background: var(--chip); border-radius: .3rem; padding: .1rem .5rem; }
.sure { color: var(--soft); font-size: .875rem; margin-left: .75rem; }
.advice { border-left: 3px solid var(--source); padding-left: .75rem; margin: .5rem 0; max-width: 46rem; }
.warning { border-left: 3px solid var(--target); padding-left: .75rem; margin: .5rem 0; }
.rests > summary { color: var(--soft); font-size: .875rem; }
.facts { margin: .25rem 0; }
.facts > div {
  display: grid; grid-template-columns: minmax(9rem, 1fr) minmax(8rem, 1fr) 2fr; gap: 0 1rem;
  padding: .3rem 0; border-bottom: 1px solid var(--rule); font-size: .9375rem;
}
.facts dt { color: var(--soft); }
.facts dd { margin: 0; font-variant-numeric: tabular-nums; }
.facts dd:nth-of-type(2) { color: var(--soft); font-size: .8125rem; }
h3 { font-size: 1rem; margin: 1.5rem 0 .25rem; }
.card h2 { font-size: 1rem; margin-top: 1.5rem; }
pre { overflow-x: auto; background: var(--card); padding: .75rem 1rem; border-radius: .5rem; font-size: .8125rem; }
@media (max-width: 36rem) {
  .facts > div { grid-template-columns: 1fr; }
  nav a { grid-template-columns: 1.5rem 1fr; }
  nav .asked, nav .glance { grid-column: 2; }
  .tiles { grid-template-columns: 1fr 1fr; }
  .tiles dd:nth-of-type(1) { font-size: 1rem; }
}
@media print {
  :root {
    color-scheme: light; --page: #ffffff; --card: #f5f6f7; --ink: #000000; --soft: #444444; --rule: #bbbbbb;
    --source: #2478b8; --target: #c96a00; --chip: #eeeeee; --chip-other: #eeeeee;
  }
  body { max-width: none; padding: 0; font-size: .875rem; }
  figure, .pair, tr, .facts > div, .tiles > div { break-inside: avoid; }
  h1, h2, h3, .ruling { break-after: avoid; }
  summary { list-style: none; }
  .scroll, pre { overflow: visible; }
  pre { white-space: pre-wrap; }
  table { overflow-wrap: anywhere; font-size: .75rem; }
  .number { white-space: normal; }
}
footer { margin-top: 2.5rem; border-top: 1px solid var(--rule); padding-top: .75rem; }
.js-plotly-plot .main-svg text { fill: var(--ink) !important; }
.js-plotly-plot .main-svg .hoverlayer text, .js-plotly-plot .main-svg .bartext-inside { fill: #ffffff !important; }
.js-plotly-plot .gridlayer path, .js-plotly-plot .zerolinelayer path { stroke: var(--rule) !important; }
"""
