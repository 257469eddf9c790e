# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""How the report looks: light and dark by the reader's setting, from a phone to a wide screen, and on paper."""

from __future__ import annotations

STYLE = """\
:root{color-scheme:light dark;--bg:#f5f6f8;--card:#fff;--ink:#16191f;--soft:#5c6675;--line:#e3e6eb;--tint:#f0f2f5;
--well:#1f8a4c;--well-bg:#e3f4e9;--moving:#2563c9;--moving-bg:#e5eefb;--attention:#c2410c;--attention-bg:#fdebe0;--pending:#8a6100;--pending-bg:#fbf0cf;
--rejected:#6b7280;--rejected-bg:#eceef1;--accent:#5b3fd1;--minus:#b42318;--plus:#1f7a45;--shade:0 1px 2px #10182810,0 4px 16px #1018280a}
@media (prefers-color-scheme:dark){:root{--bg:#0e1116;--card:#161b22;--ink:#e8ebf0;--soft:#98a3b3;--line:#272e38;--tint:#1d232c;
--well:#4cc38a;--well-bg:#12301f;--moving:#70a5ff;--moving-bg:#14284a;--attention:#ff9a62;--attention-bg:#3d2112;--pending:#e5bd50;--pending-bg:#362b0c;
--rejected:#98a3b3;--rejected-bg:#232a33;--accent:#a794ff;--minus:#ff8f85;--plus:#6fd69a;--shade:none}}
*{box-sizing:border-box}
html{scroll-behavior:smooth;scroll-padding-top:4rem;-webkit-text-size-adjust:100%}
body{margin:0;background:var(--bg);color:var(--ink);font:15px/1.5 system-ui,-apple-system,"Segoe UI",Roboto,"Noto Sans",sans-serif}
main,header>div,nav>div,footer{max-width:76rem;margin:0 auto;padding:0 1.25rem}
h1{font-size:1.55rem;line-height:1.2;margin:0;letter-spacing:-.02em}
h2{font-size:1.15rem;margin:0 0 .75rem;letter-spacing:-.01em;display:flex;gap:.5rem;align-items:baseline}
h2 small,h3 small{color:var(--soft);font-weight:400;font-size:.85rem}
h3{font-size:1rem;margin:0}
p{margin:.25rem 0}
a{color:inherit}
code,.mono{font:.86em/1.45 ui-monospace,SFMono-Regular,Menlo,Consolas,"Liberation Mono",monospace}
.foreign{unicode-bidi:isolate;overflow-wrap:anywhere}
.soft{color:var(--soft)}
.none{color:var(--soft);padding:.9rem 1.1rem;border:1px dashed var(--line);border-radius:12px}
header{padding:2rem 0 1.25rem}
.head{display:flex;gap:.9rem;align-items:center}
.mark{flex:none;width:44px;height:44px;border-radius:12px;background:linear-gradient(140deg,#6d4df0,#2f7bd9);color:#fff;padding:9px}
.verdict{font-size:1.15rem;margin:1.1rem 0 .2rem;font-weight:600;display:flex;gap:.6rem;align-items:baseline}
.verdict::before{content:"";flex:none;width:.7rem;height:.7rem;border-radius:50%;background:currentColor;align-self:center}
.verdict.well{color:var(--well)}.verdict.moving{color:var(--moving)}.verdict.attention{color:var(--attention)}.verdict.pending{color:var(--pending)}
.verdict.none{color:var(--soft);border:0;padding:0}
.tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(8rem,1fr));gap:.75rem;margin:1rem 0}
.tile,.card{background:var(--card);border:1px solid var(--line);border-radius:12px;box-shadow:var(--shade)}
.tile{padding:.75rem 1rem;text-decoration:none;display:block}
.tile b{display:block;font-size:1.6rem;line-height:1.2;letter-spacing:-.02em;font-variant-numeric:tabular-nums}
.tile b span{font-size:1rem;color:var(--soft);font-weight:500}
.tile small{color:var(--soft)}
.tile.alert b{color:var(--attention)}.tile.ask b{color:var(--pending)}.tile.go b{color:var(--moving)}
.bar{display:flex;gap:2px;height:10px;border-radius:6px;overflow:hidden;background:var(--tint)}
.bar i{display:block;min-width:3px}
.bar .well,.dot.well{background:var(--well)}.bar .moving,.dot.moving{background:var(--moving)}.bar .attention,.dot.attention{background:var(--attention)}
.bar .pending,.dot.pending{background:var(--pending)}.bar .rejected,.dot.rejected{background:var(--rejected)}
.legend{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;margin:.5rem 0 0;color:var(--soft);font-size:.87rem}
.dot{display:inline-block;width:.6rem;height:.6rem;border-radius:50%;margin-right:.4rem}
nav{position:sticky;top:0;z-index:2;background:color-mix(in srgb,var(--bg) 88%,transparent);backdrop-filter:blur(8px);border-block:1px solid var(--line)}
nav>div{display:flex;gap:.35rem;overflow-x:auto;padding-block:.45rem;scrollbar-width:none}
nav a{flex:none;text-decoration:none;color:var(--soft);padding:.25rem .7rem;border-radius:8px;font-size:.92rem}
nav a:hover{background:var(--tint);color:var(--ink)}
nav a b{font-weight:600;color:var(--ink);font-variant-numeric:tabular-nums}
section{margin:2rem 0}
.cards{display:grid;grid-template-columns:repeat(auto-fill,minmax(min(24rem,100%),1fr));gap:.9rem}
.card{padding:1rem 1.15rem}
.card dl{display:grid;grid-template-columns:auto 1fr;gap:.15rem .9rem;margin:.7rem 0 0;font-size:.92rem}
.card dt{color:var(--soft)}.card dd{margin:0;overflow-wrap:anywhere}
.top{display:flex;justify-content:space-between;gap:.75rem;align-items:baseline;margin-bottom:.55rem}
.tag{display:inline-block;padding:.05rem .5rem;border-radius:99px;font-size:.8rem;background:var(--tint);color:var(--soft);white-space:nowrap}
.tag.well{background:var(--well-bg);color:var(--well)}.tag.moving{background:var(--moving-bg);color:var(--moving)}
.tag.attention{background:var(--attention-bg);color:var(--attention)}.tag.pending{background:var(--pending-bg);color:var(--pending)}
.tag.rejected{background:var(--rejected-bg);color:var(--rejected)}
.doing{margin:.75rem 0 0;padding:.6rem .8rem;background:var(--tint);border-radius:8px;font-size:.92rem}
.do{font-weight:500}
.do::before{content:"Do now  ";color:var(--accent);font-weight:600}
.waits{display:grid;gap:.6rem}
.wait{display:grid;grid-template-columns:minmax(11rem,16rem) 1fr;gap:.3rem 1.1rem;border-left:4px solid var(--line)}
.wait.attention{border-left-color:var(--attention)}.wait.pending{border-left-color:var(--pending)}.wait.moving{border-left-color:var(--moving)}
.wait.cluster{border-left-color:var(--accent)}
.wait .who{display:flex;flex-wrap:wrap;gap:0 .8rem;align-content:start;overflow-wrap:anywhere}.wait .who>.soft{flex-basis:100%}
.wait .for::before{content:"waits for ";color:var(--soft)}
.machines details,.drift details{margin:0 0 .9rem;padding:0;overflow:hidden}
summary{cursor:pointer;padding:.75rem 1.1rem;display:flex;gap:.75rem;align-items:baseline;flex-wrap:wrap;list-style-position:inside}
summary::marker{color:var(--soft)}
details[open]>summary{border-bottom:1px solid var(--line)}
.scroll{overflow-x:auto}
table{border-collapse:collapse;width:100%;font-size:.92rem}
th{text-align:left;font-weight:500;color:var(--soft);font-size:.82rem;white-space:nowrap}
th,td{padding:.5rem .75rem;vertical-align:top;border-bottom:1px solid var(--line)}
th:first-child,td:first-child{padding-left:1.1rem}th:last-child,td:last-child{padding-right:1.1rem}
tbody tr:last-child td{border-bottom:0}
td.name{min-width:12rem;overflow-wrap:anywhere}td.what{min-width:16rem}
td .sub{display:block;color:var(--soft);font-size:.86rem}
.minus{color:var(--minus)}.plus{color:var(--plus)}
.filter{display:flex;flex-wrap:wrap;gap:.35rem;margin:0 0 .8rem}
.filter input{position:absolute;opacity:0;pointer-events:none}
.filter label{padding:.25rem .8rem;border:1px solid var(--line);border-radius:99px;cursor:pointer;font-size:.88rem;color:var(--soft);background:var(--card)}
.filter input:checked+label{background:var(--ink);color:var(--bg);border-color:var(--ink)}
.filter input:focus-visible+label,a:focus-visible,summary:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
.machines:has(#show-attention:checked) tr[data-s]:not([data-s=attention]),.machines:has(#show-pending:checked) tr[data-s]:not([data-s=pending]),
.machines:has(#show-moving:checked) tr[data-s]:not([data-s=moving]),.machines:has(#show-well:checked) tr[data-s]:not([data-s=well]),
.machines:has(#show-rejected:checked) tr[data-s]:not([data-s=rejected]),.machines:has(#show-open:checked) tr[data-s=well]{display:none}
.steps{list-style:none;margin:0;padding:0;display:grid;gap:.5rem;counter-reset:step}
.steps li{counter-increment:step;display:grid;grid-template-columns:2.2rem 1fr;gap:0 .6rem;padding:.7rem 1rem}
.steps li::before{content:counter(step);grid-row:1/9;width:1.8rem;height:1.8rem;border-radius:50%;background:var(--tint);color:var(--soft);
display:grid;place-items:center;font-size:.85rem;font-weight:600}
.steps li.done::before{content:"\\2713";background:var(--well-bg);color:var(--well)}
.steps li>*{grid-column:2}
.life{width:7rem;height:6px;background:var(--tint);border-radius:4px;overflow:hidden;display:inline-block;vertical-align:middle;margin-right:.6rem}
.life i{display:block;height:100%;background:var(--well)}.life i.pending{background:var(--pending)}.life i.attention{background:var(--attention)}
.events{list-style:none;margin:0;padding:.4rem 1.1rem}
.events li{display:grid;grid-template-columns:5.2rem 1fr;gap:.8rem;padding:.45rem 0;position:relative}
.events li+li{border-top:1px solid var(--line)}
.events .day{display:block;font-weight:600;color:var(--soft);padding-top:.9rem}
.events time{color:var(--soft);font-variant-numeric:tabular-nums}
.events .Warning b{color:var(--attention)}
footer{padding-block:1.5rem 3rem;color:var(--soft);font-size:.87rem}
@media (max-width:46rem){body{font-size:16px}h1{font-size:1.35rem}.tiles{grid-template-columns:1fr 1fr}.wait{grid-template-columns:1fr}
.machines thead,.certificates thead{display:none}.machines tr,.certificates tr{display:block;padding:.7rem 1rem;border-bottom:1px solid var(--line)}
.machines td,.certificates td{display:block;border:0;padding:.1rem 0!important;min-width:0}.events li{grid-template-columns:1fr;gap:.1rem}}
@media print{nav,.filter{display:none}body{background:#fff}.card,.tile{box-shadow:none;break-inside:avoid}}
"""
