"""The style sheet of a page; nothing in it is fetched, and nothing depends on the data."""

from __future__ import annotations

from typing import Final

_LIGHT: Final = (
    "--back:#fff;--panel:#f6f7f9;--ink:#1b1f24;--soft:#4d5661;--rule:#d4d9df;"
    "--first:#0b57a4;--second:#a34700;--third:#5b2a86;--alarm:#a3001b;--on-alarm:#fff"
)
_DARK: Final = (
    "--back:#14171a;--panel:#1d2125;--ink:#e8eaed;--soft:#b3bac2;--rule:#3b424a;"
    "--first:#7db7ff;--second:#ffb070;--third:#d3b3ff;--alarm:#ffb4ab;--on-alarm:#3b0005"
)

STYLE: Final = f"""
:root{{color-scheme:light dark;{_LIGHT}}}
@media (prefers-color-scheme:dark){{:root{{{_DARK}}}}}
*{{box-sizing:border-box}}
body{{margin:0;background:var(--back);color:var(--ink);font:1rem/1.5 system-ui,sans-serif;
 overflow-wrap:anywhere}}
header,main,footer{{max-width:64rem;margin:0 auto;padding:0 1rem}}
h1{{font-size:1.6rem;line-height:1.2;margin:1.5rem 0 .25rem}}
h2{{font-size:1.2rem;line-height:1.3;margin:2.25rem 0 .5rem}}
p,ul{{max-width:44rem;margin:.5rem 0}}
ul{{padding-left:1.25rem}}
.soft,footer,caption{{color:var(--soft)}}
.alarm{{background:var(--alarm);color:var(--on-alarm);padding:.75rem 1rem;border-radius:.4rem;
 margin:1rem 0;font-size:1.1rem}}
.alarm strong{{display:block;font-size:clamp(2rem,9vw,3.5rem);line-height:1.1;
 letter-spacing:.02em}}
.facts{{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,9rem),1fr));
 gap:.6rem;margin:1rem 0;padding:0;max-width:none;list-style:none}}
.facts li{{background:var(--panel);border-radius:.4rem;padding:.6rem .8rem}}
.facts strong{{display:block;font-size:1.35rem;line-height:1.25}}
.pair{{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,24rem),1fr));
 gap:0 2rem;align-items:start}}
.pair>*{{min-width:0;max-width:31rem}}
.single>section{{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,24rem),1fr));
 gap:0 2rem;align-items:center}}
.single figure{{max-width:31rem}}
h3{{font-size:1rem;margin:.75rem 0 0}}
figure{{margin:.5rem 0 0}}
figure svg{{display:block;width:100%;height:auto}}
figcaption{{font-size:.9rem;margin:.25rem 0}}
.key{{display:inline-block;margin-right:1rem}}
.key .swatch{{display:inline;width:1.75rem;height:.6rem}}
svg text{{font:12px system-ui,sans-serif;fill:var(--ink)}}
.grid{{stroke:var(--rule);stroke-width:1}}
.frame{{fill:none;stroke:var(--soft);stroke-width:1}}
.line{{fill:none;stroke-width:2.5;stroke-linejoin:round}}
.line-0{{stroke:var(--first)}}
.line-1{{stroke:var(--second);stroke-dasharray:7 4}}
.line-2{{stroke:var(--third);stroke-dasharray:2 3}}
.dot-0{{fill:var(--first)}}
.dot-1{{fill:var(--second)}}
.dot-2{{fill:var(--third)}}
.bar{{width:min(7rem,22vw);height:.7rem;vertical-align:middle}}
.bar rect{{fill:var(--first)}}
.bar.negative rect{{fill:var(--second)}}
.bar line{{stroke:var(--soft)}}
.scroll{{overflow-x:auto;margin:.5rem 0 1rem}}
.scroll:focus-visible{{outline:2px solid var(--first)}}
table{{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}}
caption{{text-align:left;padding:.25rem 0}}
th,td{{text-align:left;vertical-align:top;padding:.25rem min(.9rem,3vw) .25rem 0;
 border-bottom:1px solid var(--rule)}}
th{{font-weight:600}}
th,td{{overflow-wrap:break-word}}
tbody th{{font-weight:400;overflow-wrap:anywhere;min-width:7.5rem}}
figure+.scroll tbody th{{min-width:0;white-space:nowrap}}
td{{min-width:3rem}}
footer{{font-size:.9rem;border-top:1px solid var(--rule);margin-top:2.5rem;padding:1rem}}
@media (max-width:30rem){{svg text{{font-size:14px}}}}
@media print{{
 :root{{color-scheme:light;{_LIGHT}}}
 body{{font-size:10pt}}
 figure,tr,.facts li,.alarm{{break-inside:avoid}}
 h2{{break-after:avoid}}
 .alarm{{border:3px solid var(--alarm);background:none;color:var(--alarm)}}
}}
"""
