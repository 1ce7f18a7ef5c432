"""The style sheet of the page of an audit: that of all pages, with verdicts, tables of words and its own pictures."""

from ..report.page_style import STYLE as SHARED

STYLE = (
    SHARED
    + """
:root{--bad:#b3261e;--unsure:#8a6100;--ban:#b3261e1c;--s0:#1f6cb8;--s1:#8a5fb0;--s2:#1b7f4c;--s3:#c4511a}
@media(prefers-color-scheme:dark){:root{--bad:#ff8a80;--unsure:#e2b84d;--ban:#ff8a8026;--s0:#7db8f5;--s1:#c4a1e6;
--s2:#55c88d;--s3:#ff9a5c}}
.cards .no b,td.violation{color:var(--bad)}.cards .void b,td.void,td.inconclusive{color:var(--unsure)}
td.passed{color:var(--same)}td.violation,td.void,td.inconclusive,td.passed{font-weight:600}
.lead{font-size:18px;line-height:1.5;max-width:66ch}
h3{font-size:17px;margin:34px 0 0}
table.words td,table.words th{text-align:left;white-space:normal;vertical-align:top;overflow-wrap:break-word}
table.words td,table.words th[scope=row]{min-width:8ch}table.words .number{text-align:right;white-space:nowrap;
overflow-wrap:normal;min-width:0}
table.words .mark-cell{white-space:nowrap;overflow-wrap:normal;min-width:0}
table.words{font-size:14px;line-height:1.45}
.scroll+p{margin-top:18px}
ul.plain{padding-left:20px;max-width:72ch;margin:8px 0 0}ul.plain li{margin:0 0 8px}
dl.facts{display:grid;grid-template-columns:minmax(9em,auto) 1fr;gap:8px 24px;margin:14px 0 0;max-width:86ch}
dl.facts dt{color:var(--soft)}dl.facts dd{margin:0;overflow-wrap:anywhere}
.gallery{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:40px 48px;margin-top:18px}
.gallery figure{margin:0;break-inside:avoid}.gallery svg{max-width:460px}
.gallery figcaption b{color:var(--ink);display:block}
.line.claimed{stroke:var(--ink);stroke-width:2}.line.blind,.line.ceiling{stroke:var(--soft);stroke-dasharray:5 4}
.line.ceiling{stroke:var(--ink)}.forbidden{fill:var(--ban)}.dots.measured{stroke:var(--s0)}.dots.over{stroke:var(--bad)}.dots.own{stroke:var(--with)}
.line.erasure{stroke-width:1.4}
.series0{stroke:var(--s0)}.series1{stroke:var(--s1)}.series2{stroke:var(--s2)}.series3{stroke:var(--s3)}
code.key{overflow-wrap:anywhere}
@media(max-width:760px){.gallery{grid-template-columns:1fr}dl.facts{grid-template-columns:1fr;gap:2px}
dl.facts dd{margin-bottom:10px}table.words{min-width:640px}}
@media print{body{font-size:12px}h2{margin-top:32px;break-after:avoid}tr,pre{break-inside:avoid}
pre{white-space:pre-wrap}.scroll{overflow:visible}}
"""
)
