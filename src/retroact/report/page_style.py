"""The style sheet of the page: system fonts, one accent for each history, light and dark."""

STYLE = """
:root{color-scheme:light dark;--paper:#fdfdfb;--card:#f4f5f2;--ink:#1b2430;--soft:#55606e;--hair:#e2e5e1;
--with:#c4511a;--twin:#5b9fe3;--twin-ink:#1f6cb8;--band:#4a90d926;--same:#1b7f4c;--bar:#86a9cc;--code:#eef0ec}
@media(prefers-color-scheme:dark){:root{--paper:#12161b;--card:#1b2128;--ink:#e8ebef;--soft:#a3adb9;--hair:#2c343d;
--with:#ff9a5c;--twin:#3f86d0;--twin-ink:#7db8f5;--band:#5aa2ee2b;--same:#55c88d;--bar:#3f628a;--code:#222a33}}
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);line-height:1.6;-webkit-text-size-adjust:100%;
font:16px/1.6 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
main{max-width:1024px;margin:0 auto;padding:56px 32px 72px}
header p.brand{margin:0 0 28px;font-weight:650;letter-spacing:.02em}
.badge{font-weight:500;font-size:13px;color:var(--soft);border:1px solid var(--hair);border-radius:99px;
padding:3px 11px;margin-left:10px;white-space:nowrap}
h1{font-size:clamp(28px,4.2vw,40px);line-height:1.12;letter-spacing:-.02em;margin:0 0 18px;font-weight:700}
h2{font-size:22px;letter-spacing:-.01em;margin:72px 0 6px}
p{max-width:70ch;margin:0 0 14px}
.soft,figcaption,caption,footer{color:var(--soft)}
.cards{display:grid;grid-template-columns:repeat(4,1fr);gap:14px;margin:36px 0 40px;padding:0;list-style:none}
.cards li{background:var(--card);border-radius:12px;padding:18px 18px 16px}
.cards b{display:block;font-size:26px;line-height:1.2;letter-spacing:-.01em;font-weight:680;white-space:nowrap}
.cards span{font-size:14px;line-height:1.4;color:var(--soft);display:block;margin-top:6px}
.cards .yes b{color:var(--same)}
.explain{display:grid;grid-template-columns:repeat(3,1fr);gap:32px;margin:0}
.explain dt{font-weight:650}.explain dd{margin:4px 0 0;color:var(--soft)}
figure{margin:22px 0 0}figcaption{font-size:14px;max-width:86ch;margin-top:14px}
svg{display:block;width:100%;height:auto;overflow:visible}svg.narrow{display:none;max-width:520px;margin:0 auto}
svg text{fill:var(--ink);font-size:13px;paint-order:stroke;stroke:var(--paper);stroke-width:4px;stroke-linejoin:round;
font-variant-numeric:tabular-nums}
svg .tick,svg .unit,svg .note{fill:var(--soft)}svg .strong{font-weight:650}svg .heading{font-size:15px;font-weight:650}
svg .with-text{fill:var(--with)}svg .twin-text{fill:var(--twin-ink)}svg .same-text{fill:var(--same);font-size:14px}
.line,.dots{fill:none;stroke-linejoin:round;stroke-linecap:round}.line{stroke-width:1.6}
.line.with,.dots.with{stroke:var(--with)}.line.twin,.dots.twin{stroke:var(--twin)}.line.thick{stroke-width:4.2}
.line.truth{stroke:var(--ink);stroke-width:2.2;stroke-dasharray:.1 7}.line.same{stroke:var(--same);stroke-width:3}
.band{fill:var(--band)}.lens{fill:none;stroke:var(--ink)}.fill{fill:var(--with);opacity:.16}
.grid{stroke:var(--hair);fill:none}.axis,.zero{stroke:var(--soft);fill:none}
.erasure{stroke:var(--ink);stroke-dasharray:5 4}
.bar{fill:var(--bar)}.whisker{stroke:var(--ink);stroke-width:1.6;fill:none}
.mark{stroke:var(--with);stroke-width:3.2;fill:none}
.scroll{overflow-x:auto;margin-top:18px}
table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums;font-size:15px}
caption{text-align:left;font-size:14px;padding:0 0 10px}
th,td{padding:9px 14px 9px 0;border-bottom:1px solid var(--hair);text-align:right;white-space:nowrap}
th:first-child,td:first-child{text-align:left}th:last-child,td:last-child{padding-right:0}
thead th{font-weight:600;font-size:13px;color:var(--soft);vertical-align:bottom}tbody th{font-weight:500}
details{margin-top:16px}summary{cursor:pointer;font-size:14px;color:var(--soft)}
code{background:var(--code);border-radius:6px;padding:2px 6px;font:14px/1.5 ui-monospace,Menlo,Consolas,monospace}
pre{background:var(--code);border-radius:10px;padding:14px 16px;overflow-x:auto;margin:14px 0}pre code{padding:0}
.promise{border-left:3px solid var(--same);padding:2px 0 2px 18px;margin:18px 0}
footer{margin-top:72px;padding-top:18px;border-top:1px solid var(--hair);font-size:13px}
@media(max-width:760px){main{padding:32px 16px 48px}svg.wide{display:none}svg.narrow{display:block}h2{margin-top:56px}
.cards{grid-template-columns:repeat(2,1fr);gap:10px}.cards li{padding:14px}.cards b{font-size:21px}
.explain{grid-template-columns:1fr;gap:18px}table{font-size:14px}th,td{padding-right:12px;white-space:normal}}
@media print{svg.wide{display:block}svg.narrow{display:none}main{padding:0}}
"""
