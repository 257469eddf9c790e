# Copyright (c) Ichor contributors
# GNU General Public License v3.0 or later (see COPYING or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

"""The report's page, in Jinja2. Its parts are in report_parts."""

from __future__ import annotations

PAGE = """\
{% import "parts" as parts with context %}
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{{ title }}</title>
<style>
{% include "style" %}
</style>
</head>
<body>
<header><div>
<div class="head">
<svg class="mark" viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" aria-hidden="true">
<path d="M12 2.5c3.6 4.6 6.2 7.9 6.2 11.5a6.2 6.2 0 0 1-12.4 0C5.8 10.4 8.4 7.1 12 2.5Z"/><path d="M9 14.5a3 3 0 0 0 3 3"/></svg>
<div><h1>{{ title }}</h1>
<p class="soft">{{ made_at|clock }} UTC · <span class="foreign">{{ store }}</span></p></div>
</div>
{{ parts.verdict() }}
<div class="tiles">
<a class="tile" href="#machines"><b>{{ totals.ready }}<span> / {{ totals.approved }}</span></b><small>machines Ready</small></a>
<a class="tile{{ ' alert' if totals.attention }}" href="#waits"><b>{{ totals.attention }}</b><small>want attention</small></a>
<a class="tile{{ ' go' if totals.moving }}" href="#waits"><b>{{ totals.moving }}</b><small>on their way</small></a>
<a class="tile{{ ' ask' if totals.pending }}" href="#waits"><b>{{ totals.pending }}</b><small>wait for approval</small></a>
<a class="tile{{ ' alert' if totals.drifted }}" href="#drift"><b>{{ totals.drifted }}</b><small>drifted</small></a>
{% set ending = certificates|rejectattr("renews")|list %}
<a class="tile{{ ' alert' if ending and ending[0].days < 30 }}" href="#certificates"><b>{{ parts.days(ending[0]) if ending else "–" }}</b>
<small>until a certificate ends</small></a>
</div>
{% if totals.machines %}{{ parts.bar(totals) }}{{ parts.legend() }}{% endif %}
</div></header>
<nav aria-label="Sections"><div>
<a href="#clusters">Clusters <b>{{ clusters|length }}</b></a>
<a href="#waits">Waits <b>{{ waits|length }}</b></a>
{% if plan is not none %}<a href="#plan">Plan <b>{{ plan.steps|length }}</b></a>{% endif %}
<a href="#machines">Machines <b>{{ machines|length }}</b></a>
<a href="#drift">Drift <b>{{ drift|length }}</b></a>
<a href="#certificates">Certificates <b>{{ certificates|length }}</b></a>
<a href="#timeline">Timeline <b>{{ events|length }}</b></a>
{% if broken %}<a href="#broken">Unreadable <b>{{ broken|length }}</b></a>{% endif %}
</div></nav>
<main>
{% if notes %}
<section class="card">{% for note in notes %}<p class="foreign">{{ note }}</p>{% endfor %}</section>
{% endif %}

<section id="clusters"><h2>Clusters</h2>
{% if clusters %}
<div class="cards">{% for cluster in clusters %}{{ parts.cluster_card(cluster) }}{% endfor %}</div>
{% else %}<p class="none">There is no cluster yet. talos_cluster makes the record of one.</p>{% endif %}
</section>

<section id="waits"><h2>What waits for whom</h2>
{% if waits %}
<div class="waits">{% for wait in waits %}{{ parts.wait_card(wait) }}{% endfor %}</div>
{% else %}<p class="none">Nothing waits.</p>{% endif %}
</section>

{% if plan is not none %}
<section id="plan"><h2>The plan <small>{{ plan.steps|length }} step{{ "s" if plan.steps|length != 1 }}</small></h2>
{{ parts.plan_list(plan) }}
</section>
{% endif %}

<section id="machines" class="machines"><h2>Machines</h2>
{% if machines %}
<div class="filter" role="radiogroup" aria-label="Which machines">
{% set many = machines|length > limits.rows_open and totals.well < totals.machines %}
{{ parts.choice("all", "all", totals.machines, not many) }}
{{ parts.choice("open", "not well", totals.machines - totals.well, many) }}
{{ parts.choice("attention", "attention", totals.attention) }}
{{ parts.choice("moving", "on their way", totals.moving) }}
{{ parts.choice("pending", "pending", totals.pending) }}
{{ parts.choice("well", "well", totals.well) }}
{{ parts.choice("rejected", "rejected", totals.rejected) }}
</div>
{% for name, rows in machines|grouped %}{{ parts.machine_table(name, rows) }}{% endfor %}
{% else %}<p class="none">There is no machine yet. talos_discover finds those that wait in maintenance mode.</p>{% endif %}
</section>

<section id="drift" class="drift"><h2>Drift <small>what runs and what the records say</small></h2>
{% if drift %}
{% for entry in drift[:limits.drifted] %}{{ parts.drift_card(entry, loop.index <= 5) }}{% endfor %}
{% if drift|length > limits.drifted %}<p class="soft">and {{ drift|length - limits.drifted }} more machines, which the JSON has.</p>{% endif %}
{% else %}<p class="none">No machine that was compared differs from its records.</p>{% endif %}
</section>

<section id="certificates" class="certificates"><h2>Certificates</h2>
{% if certificates %}{{ parts.certificate_table(certificates) }}
{% else %}<p class="none">No certificate could be read.</p>{% endif %}
</section>

<section id="timeline"><h2>Timeline <small>newest first, UTC</small></h2>
{% if events %}{{ parts.timeline(events) }}
{% else %}<p class="none">Nothing has happened yet.</p>{% endif %}
</section>

{% if broken %}
<section id="broken"><h2>Records that cannot be read</h2>
<div class="waits">{% for entry in broken %}
<div class="card wait attention"><div class="who"><b class="foreign">{{ entry.name }}</b></div>
<div><span class="foreign">{{ entry.message }}</span>
<span class="soft foreign">{{ entry.source }}{% if entry.line %}, line {{ entry.line }}{% endif %}</span></div></div>
{% endfor %}</div></section>
{% endif %}
</main>
<footer>Made by ichor.talos from what the records and the nodes said at {{ made_at|clock }} UTC. This page loads nothing and sends nothing.</footer>
</body>
</html>
"""
