# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The parts of the report's page, in Jinja2."""

from __future__ import annotations

PARTS = """\
{% set names = {"attention": "attention", "pending": "pending", "moving": "on their way", "well": "well", "rejected": "rejected"} %}

{% macro verdict() %}
{% if not totals.machines %}<p class="verdict none">No machine is known yet.</p>
{% elif totals.attention %}
<p class="verdict attention">{{ totals.attention }} of {{ totals.machines }} machines want{{ "s" if totals.attention == 1 }} attention.</p>
{% elif totals.pending %}<p class="verdict pending">{{ totals.pending }} machine{{ "s wait" if totals.pending != 1 else " waits" }} for a person's decision.</p>
{% elif totals.moving %}<p class="verdict moving">{{ totals.moving }} machine{{ "s are" if totals.moving != 1 else " is" }} on the way, nothing is wrong.</p>
{% else %}<p class="verdict well">All is well.</p>{% endif %}
{% endmacro %}

{% macro bar(counts) %}
<div class="bar" role="img" aria-label="{% for state in names if counts[state] %}{{ counts[state] }} {{ names[state] }} {% endfor %}">
{% for state in ("well", "moving", "pending", "attention", "rejected") if counts[state] %}
<i class="{{ state }}" style="flex:{{ counts[state] }}"></i>{% endfor %}
</div>
{% endmacro %}

{% macro legend() %}
<p class="legend">{% for state in ("well", "moving", "pending", "attention", "rejected") if totals[state] %}
<span><span class="dot {{ state }}"></span>{{ totals[state] }} {{ names[state] }}</span>{% endfor %}</p>
{% endmacro %}

{% macro days(certificate) %}{% if certificate.ended %}ended{% elif certificate.days > 730 %}{{ certificate.days // 365 }} y{% else %}{{ certificate.days }} d
{%- endif %}{% endmacro %}

{% macro cluster_card(cluster) %}
<article class="card">
<div class="top"><h3 class="foreign">{{ cluster.name }}</h3><span class="soft">{{ cluster.ready }} of {{ cluster.approved }} Ready</span></div>
{{ bar(cluster.states) }}
<dl>
<dt>Versions</dt><dd>Talos {{ cluster.talos_version or "–" }}, Kubernetes {{ cluster.kubernetes_version or "–" }}</dd>
<dt>Endpoint</dt><dd class="mono foreign">{{ cluster.endpoint or "–" }}</dd>
<dt>etcd</dt><dd>{{ etcd(cluster) }}</dd>
{% if cluster.lock and cluster.lock.holder %}<dt>Lock</dt><dd class="foreign">{{ cluster.lock.holder }}: {{ cluster.lock.purpose }}</dd>{% endif %}
{% for one in cluster.conditions if one.status == "True" or one.type != "Ready" %}
<dt>{{ one.type }}</dt><dd class="foreign">{{ one.reason }} {{ one.message }}</dd>
{% endfor %}
</dl>
<div class="doing"><p class="foreign">{{ cluster.what }}{% if cluster.age %} <span class="soft">since {{ cluster.age }}</span>{% endif %}</p>
{% if cluster.advice %}<p class="do foreign">{{ cluster.advice }}</p>{% endif %}</div>
</article>
{% endmacro %}

{% macro etcd(cluster) %}
{% if not cluster.etcd %}<span class="soft">{{ "not asked" if cluster.bootstrapped_at else "not bootstrapped yet" }}</span>
{% else %}
{% set well = cluster.etcd|selectattr("member")|list %}
<span class="tag {{ 'well' if well|length == cluster.etcd|length else 'attention' }}">{{ well|length }} of {{ cluster.etcd|length }} members well</span><br>
{% for one in cluster.etcd[:limits.etcd] %}
<span class="foreign">{{ one.machine }}: {% if one.answers %}
{{ "leader" if one.leader else "learner" if one.learner else "member" if one.member else "sees no leader" }}
{% if one.db_size is not none %}<span class="soft">{{ one.db_size|size }}</span>{% endif %}
{% else %}<span class="soft">{{ one.reason }} {{ one.message }}</span>{% endif %}</span><br>
{% endfor %}
{% endif %}
{% endmacro %}

{% macro wait_card(wait) %}
<div class="card wait {{ wait.kind }}">
<div class="who">{% for name in wait.who[:limits.who] %}<b class="foreign">{{ name }}</b>{% endfor %}
{% if wait.who|length > limits.who %}<span class="soft">and {{ wait.who|length - limits.who }} more</span>{% endif %}
<span class="soft foreign">{{ "cluster" if wait.kind == "cluster" else wait.cluster }}</span></div>
<div><p class="foreign">{{ wait.what }}</p>
{% if wait.waits_for %}<p class="for foreign">{{ wait.waits_for }}</p>{% endif %}
{% if wait.advice %}<p class="do foreign">{{ wait.advice }}</p>{% endif %}</div>
</div>
{% endmacro %}

{% macro choice(key, text, count, checked=false) %}
{% if count or key == "all" %}
<input type="radio" name="show" id="show-{{ key }}"{{ " checked" if checked }}><label for="show-{{ key }}">{{ text }} {{ count }}</label>
{% endif %}
{% endmacro %}

{% macro machine_table(cluster, rows) %}
<details class="card" open>
<summary><h3 class="foreign">{{ cluster or "no cluster" }}</h3><span class="soft">{{ rows|length }} machine{{ "s" if rows|length != 1 }}</span></summary>
<div class="scroll"><table>
<thead><tr><th>Machine</th><th>Stage</th><th>Condition</th><th>Since</th><th>What it is doing</th></tr></thead>
<tbody>
{% for row in rows %}
<tr data-s="{{ row.state }}"><td class="name"><b class="foreign">{{ row.name }}</b>
<span class="sub foreign">{{ [row.hostname, row.role, row.address]|select|join(" · ") }}</span></td>
<td>{{ row.stage or "unknown" }}</td>
<td><span class="tag {{ row.state }}">{{ row.reason or row.state }}</span>{% if row.held %} <span class="tag pending">held</span>{% endif %}
{% if row.drifted and row.reason != "Drifted" %} <span class="tag attention">drift</span>{% endif %}
{% if row.answers is false %} <span class="tag attention">silent</span>{% endif %}</td>
<td>{% if row.age %}<span title="{{ row.since }}">{{ row.age }}</span>{% endif %}</td>
<td class="what foreign">{{ row.what }}
{% if row.state != "well" and row.message and row.message != row.what %}<span class="sub">{{ row.message }}</span>{% endif %}</td></tr>
{% endfor %}
</tbody></table></div>
</details>
{% endmacro %}

{% macro drift_card(entry, open) %}
<details class="card"{{ " open" if open }}>
<summary><h3 class="foreign">{{ entry.machine }}</h3><span class="soft">{{ entry.paths|length }} path{{ "s" if entry.paths|length != 1 }}</span>
{% if entry.reboot %}<span class="tag attention">needs a reboot</span>{% endif %}
{% if entry.paths|selectattr("authority")|list %}<span class="tag attention">other authority</span>{% endif %}</summary>
<div class="scroll"><table>
<thead><tr><th>Path</th><th>The node runs</th><th>The records say</th></tr></thead>
<tbody>
{% for one in entry.paths[:limits.paths] %}
<tr><td class="mono foreign">{{ one.document }}{% if one.path %}<br><b>{{ one.path }}</b>{% endif %}</td>
<td class="mono minus foreign">{{ "(absent)" if one.running is none else one.running|truncate(300, true, "…") }}</td>
<td class="mono plus foreign">{{ "(absent)" if one.wanted is none else one.wanted|truncate(300, true, "…") }}</td></tr>
{% endfor %}
</tbody></table></div>
{% if entry.paths|length > limits.paths %}<p class="soft">and {{ entry.paths|length - limits.paths }} more paths, which the JSON has.</p>{% endif %}
</details>
{% endmacro %}

{% macro certificate_row(one) %}
{% set state = "attention" if one.ended or one.days < 30 and not one.renews else "pending" if one.days < 90 and not one.renews else "well" %}
<tr><td class="foreign">{{ one.what }}</td><td class="foreign">{{ one.cluster }}</td><td>{{ one.not_after|clock }}</td>
{% set part = 0 if one.ended else 100 if one.renews else [100, [4, one.days * 100 // 365]|max]|min %}
<td><span class="life"><i class="{{ state }}" style="width:{{ part }}%"></i></span>
{{ "renews itself" if one.renews and not one.ended else days(one) }}</td></tr>
{% endmacro %}

{% macro certificate_table(found) %}
{% set own = found|rejectattr("renews")|list + found|selectattr("renews")|selectattr("ended")|list %}
{% set nodes = found|selectattr("renews")|rejectattr("ended")|list %}
<div class="card scroll" style="padding:0"><table>
<thead><tr><th>Certificate</th><th>Cluster</th><th>Ends</th><th>Left</th></tr></thead>
<tbody>
{% for one in own %}{{ certificate_row(one) }}{% endfor %}
{% if nodes %}<tr><td>certificates of {{ nodes|length }} node{{ "s" if nodes|length != 1 }}</td><td></td><td>{{ nodes[0].not_after|clock }} at the earliest</td>
<td><span class="life"><i style="width:100%"></i></span>Talos renews them</td></tr>{% endif %}
</tbody></table></div>
{% endmacro %}

{% macro plan_list(plan) %}
{% if plan.steps %}
<ol class="steps">{% for step in plan.steps[:limits.steps] %}
<li class="card{{ ' done' if step.done }}"><div><b>{{ step.action|words }}</b> <span class="foreign">{{ step.target }}</span>
{% if step.disruption != "none" %} <span class="tag {{ 'attention' if step.disruption == 'wipe' else 'pending' }}">{{ step.disruption }}</span>{% endif %}
{% if not step.reversible %} <span class="tag attention">cannot be undone</span>{% endif %}</div>
{% if step.why %}<div class="soft foreign">because {{ step.why }}</div>{% endif %}
{% for wait in step.waits_for %}<div class="soft foreign">waits for {{ wait }}</div>{% endfor %}</li>
{% endfor %}</ol>
{% if plan.steps|length > limits.steps %}<p class="soft">and {{ plan.steps|length - limits.steps }} more steps, which the JSON has.</p>{% endif %}
{% else %}<p class="none">Nothing is to be done.</p>{% endif %}
{% for key, word in (("refusals", "Refused"), ("warnings", "Warning"), ("waits", "Waits for")) %}
{% for note in plan[key] %}<p class="foreign"><b>{{ word }}</b> {{ note }}</p>{% endfor %}
{% endfor %}
<p class="soft mono">{% for one in plan.ids %}{{ one.module }} {{ one.plan_id[:12] }}{{ " · " if not loop.last }}{% endfor %}</p>
{% endmacro %}

{% macro timeline(events) %}
<ul class="events card">
{% set seen = namespace(day="") %}
{% for event in events[:limits.events] %}
{% if event.time|day != seen.day %}{% set seen.day = event.time|day %}<li class="day">{{ seen.day or "no date" }}</li>{% endif %}
<li class="{{ 'Warning' if event.type == 'Warning' else 'Normal' }}"><time datetime="{{ event.time }}">{{ event.time[11:19] }}</time>
<div><b>{{ event.reason }}</b> <span class="foreign">{{ event.name }}</span><br><span class="soft foreign">{{ event.message }}</span></div></li>
{% endfor %}
</ul>
{% if events|length > limits.events %}<p class="soft">and {{ events|length - limits.events }} older ones, which the JSON has.</p>{% endif %}
{% endmacro %}
"""
