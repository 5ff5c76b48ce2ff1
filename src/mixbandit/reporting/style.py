"""How a page looks: on a wide screen, on a phone, and in print."""

from mixbandit.plots import COLOURS

_BLUE, _ORANGE, _GREEN = COLOURS[:3]

STYLE = f"""
* {{ box-sizing: border-box; }}
html {{ -webkit-text-size-adjust: 100%; }}
body {{ margin: 0 auto; padding: 1.2rem 1rem 3rem; max-width: 58rem; background: #fff; color: #1a1a1a;
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  overflow-wrap: anywhere; -webkit-print-color-adjust: exact; print-color-adjust: exact; }}
h1 {{ font-size: 1.7rem; line-height: 1.2; margin: 0 0 1rem; }}
h2 {{ font-size: 1.2rem; margin: 2.4rem 0 .6rem; padding-top: .6rem; border-top: 1px solid #ccc; }}
h3 {{ font-size: 1rem; margin: 0 0 .2rem; }}
p, ul {{ margin: .5rem 0; }}
ul {{ padding-left: 1.2rem; }}
figure {{ margin: .8rem 0; }}
figcaption, .note, footer {{ color: #555; font-size: .9rem; }}
.verdict {{ font-size: 1.2rem; line-height: 1.4; border-left: .3rem solid {_BLUE}; padding: .1rem 0 .1rem 1rem;
  margin: 1rem 0; }}
.warning {{ border: 2px solid #a40000; background: #fff1f0; color: #7a0000; padding: .7rem 1rem; margin: 1rem 0;
  font-weight: 600; }}
.void {{ color: #555; font-size: .95rem; }}
.bad {{ color: #a40000; font-weight: 600; }}
.tiles {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: .7rem;
  margin: 1.2rem 0 0; }}
.tiles div {{ background: #f3f5f7; border-radius: .4rem; padding: .7rem .9rem; }}
.tiles dt, .tiles dd {{ margin: 0; }}
.tiles dt {{ font-size: .85rem; color: #444; }}
.tiles dd {{ font-size: 1.5rem; line-height: 1.3; font-variant-numeric: tabular-nums; }}
.tiles dd small {{ display: block; font-size: .8rem; line-height: 1.35; color: #555; }}
.slices {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(17rem, 100%), 1fr)); gap: 1rem 1.4rem; }}
.slices figure {{ margin: 0; min-width: 0; }}
.half {{ max-width: 31rem; }}
svg {{ display: block; width: 100%; height: auto; font-size: 12px; }}
svg text {{ fill: #333; }}
svg text.ruled-out {{ fill: #6b6b6b; }}
.narrow {{ display: none; }}
.axis, .grid {{ fill: none; stroke: #777; }}
.grid {{ stroke: #e3e3e3; }}
.line {{ fill: none; stroke-width: 2; stroke-linejoin: round; }}
.line.floor {{ stroke: {_BLUE}; }}
.line.edge {{ stroke: {_BLUE}; stroke-width: 1; }}
.line.seen {{ stroke: {_ORANGE}; stroke-width: 1.6; }}
.line.level {{ stroke: {_BLUE}; stroke-width: 1.2; stroke-dasharray: 5 4; }}
.line.best {{ stroke: #111; stroke-width: 2; }}
.band {{ fill: {_BLUE}; opacity: .2; }}
rect.ruled-out {{ fill: #ccc; opacity: .55; }}
.dots {{ fill: #777; fill-opacity: .65; }}
.dots.confirming {{ fill: {_GREEN}; fill-opacity: .9; }}
.interval {{ fill: {_BLUE}; fill-opacity: .55; }}
.interval.best {{ fill-opacity: 1; }}
.interval.ruled-out {{ fill: #999; opacity: 1; }}
.legend {{ list-style: none; padding: 0; display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; font-size: .9rem; }}
.legend i {{ display: inline-block; width: 1.3rem; height: .6rem; margin-right: .4rem; vertical-align: middle; }}
.legend .of-floor {{ height: .2rem; background: {_BLUE}; }}
.legend .of-seen {{ height: .2rem; background: {_ORANGE}; }}
.legend .of-dots, .legend .of-confirming {{ width: .5rem; height: .5rem; border-radius: 50%; background: #777; }}
.legend .of-confirming {{ background: {_GREEN}; }}
.legend .of-band {{ background: {_BLUE}33; border: solid {_BLUE}; border-width: 1px 0; }}
.legend .of-best {{ width: .15rem; height: .9rem; background: #111; }}
.legend .of-level {{ height: 0; border-top: 2px dashed {_BLUE}; }}
.legend .of-ruled-out {{ background: #ddd; border: 1px solid #aaa; }}
.scroll {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: .95rem; font-variant-numeric: tabular-nums; }}
th, td {{ text-align: left; padding: .3rem 1.2rem .3rem 0; border-bottom: 1px solid #e3e3e3; vertical-align: top; }}
th {{ overflow-wrap: normal; }}
td {{ min-width: 5rem; max-width: 24rem; }}
tr.changed td {{ font-weight: 600; }}
.share {{ display: inline-block; width: 5rem; height: .6rem; margin-right: .5rem; background: #e8e8e8; }}
.share b {{ display: block; height: 100%; background: {_GREEN}; }}
footer {{ margin-top: 2.5rem; padding-top: .8rem; border-top: 1px solid #ccc; }}
@media (max-width: 34rem) {{
  body {{ padding: .8rem .8rem 2rem; }}
  h1 {{ font-size: 1.4rem; }}
  .verdict {{ font-size: 1.05rem; padding-left: .8rem; }}
  .tiles {{ grid-template-columns: 1fr 1fr; }}
  .wide {{ display: none; }}
  .narrow {{ display: block; }}
  th, td {{ padding-right: .8rem; }}
}}
@page {{ margin: 15mm; }}
@media print {{
  body {{ max-width: none; padding: 0; font-size: 10pt; }}
  h1 {{ font-size: 16pt; }}
  h2 {{ font-size: 12pt; margin-top: 1.4rem; break-after: avoid; }}
  .verdict {{ font-size: 12pt; }}
  figure, tr, table, .tiles div, .warning, .verdict, .legend {{ break-inside: avoid; }}
  .slices {{ grid-template-columns: repeat(3, 1fr); gap: .6rem .8rem; }}
  .scroll {{ overflow: visible; }}
  p, li {{ orphans: 3; widows: 3; }}
}}
"""
