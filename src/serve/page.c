/* page.c -- / : one small page for people, which asks /v1/status every two seconds.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Nothing comes from elsewhere, and names of topics only ever enter the page as text.
 */
#include "serve/handlers.h"

#include <string.h>

#define ROWS_MAX "200" /* partitions shown: those with faults first, then by lag */

static const char *const page[] = {
    "<!doctype html>\n<html lang=en><meta charset=utf-8><title>Heliostat</title>\n"
    "<meta name=viewport content='width=device-width'>\n"
    "<style>\n"
    "body{font:14px/1.4 system-ui,sans-serif;margin:2em auto;max-width:75em;padding:0 1em}\n"
    "table{border-collapse:collapse;width:100%;margin:.5em 0 1.5em}\n"
    "th,td{text-align:left;padding:.25em .7em;border-bottom:1px solid #8884}\n"
    "td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}\n"
    ".bad{color:#c22}#note{opacity:.7}:root{color-scheme:light dark}\n"
    "</style>\n"
    "<h1>Heliostat</h1>\n"
    "<p><a href=v1/status>/v1/status</a> &middot; <a href=metrics>/metrics</a> &middot;\n"
    "<a href=readyz>/readyz</a> &middot; <a href=healthz>/healthz</a></p>\n"
    "<p id=note>asking&hellip;</p>\n",
    "<h2>Flows</h2><table id=flows></table>\n"
    "<h2>Faults</h2><table id=faults></table>\n"
    "<h2>Partitions</h2><table id=parts></table>\n"
    "<script>\n"
    "'use strict';\n"
    "let before = null;\n"
    "const num = x => x === null || x === undefined || x < 0 ? '-' : x.toLocaleString('en');\n"
    "function table(id, heads, rows) {\n"
    "  const t = document.getElementById(id);\n"
    "  t.replaceChildren();\n"
    "  for (const cells of [heads, ...rows]) {\n"
    "    const tr = t.insertRow();\n"
    "    for (const c of cells) {\n"
    "      const cell = document.createElement(cells === heads ? 'th' : 'td');\n"
    "      const isNumber = typeof c === 'number' || c === null;\n"
    "      cell.textContent = isNumber ? num(c) : c;\n"
    "      if (isNumber) cell.className = 'n';\n"
    "      if (c === 'halted' || c === 'retrying' || c === 'refused') cell.className = 'bad';\n"
    "      tr.append(cell);\n"
    "    }\n"
    "  }\n"
    "}\n",
    "function rate(f, s) {\n"
    "  const b = before && before.flows.find(x => x.name === f.name);\n"
    "  const ms = b ? s.made_ms - before.made_ms : 0;\n"
    "  return ms > 0 ? Math.round((f.records - b.records) * 1000 / ms) : null;\n"
    "}\n"
    "function show(s) {\n"
    "  document.getElementById('note').textContent = 'version ' + s.version + ', instance ' + s.instance +\n"
    "    ', up since ' + new Date(s.start_time_ms).toISOString() + (s.ready ? ', ready' : ', not ready yet');\n"
    "  table('flows', ['flow', 'state', 'delivery', 'topics', 'partitions', 'lag', 'records', 'records/s', 'faults'],\n"
    "    s.flows.map(f => [f.name, f.state, f.delivery, f.topics, f.partitions_count, f.lag_records, f.records,\n"
    "      rate(f, s), f.faults]));\n"
    "  table('faults', ['flow', 'topic', 'partition', 'code', 'text', 'since', 'count'], s.faults.slice(0, 100).map(\n"
    "    f => [f.flow || '', f.topic || '', f.partition < 0 ? '' : f.partition, f.code, f.text,\n"
    "      new Date(f.since_ms).toISOString(), f.count]));\n",
    "  const parts = s.flows.flatMap(f => f.partitions.map(p => [f.name, p]));\n"
    "  parts.sort((a, b) => (b[1].fault ? 1 : 0) - (a[1].fault ? 1 : 0) || b[1].lag_records - a[1].lag_records);\n"
    "  table('parts', ['flow', 'topic', 'partition', 'state', 'next offset', 'lag', 'lag ms', 'records'],\n"
    "    parts.slice(0, " ROWS_MAX ").map(([flow, p]) => [flow, p.topic, p.partition, p.state, p.next_offset,\n"
    "      p.lag_records, p.lag_ms, p.records]));\n"
    "  if (!before || before.made_ms !== s.made_ms) before = s;\n"
    "}\n"
    "async function ask() {\n"
    "  let wait = 2000;\n"
    "  try {\n"
    "    let s = await (await fetch('v1/status?partitions=false')).json();\n"
    "    const n = s.flows.reduce((sum, f) => sum + f.partitions_count, 0);\n"
    "    if (n <= 20000) s = await (await fetch('v1/status')).json();\n"
    "    else wait = 10000;\n"
    "    show(s);\n"
    "  } catch (e) {\n"
    "    document.getElementById('note').textContent = 'no answer: ' + e;\n"
    "  }\n"
    "  setTimeout(ask, wait);\n"
    "}\n"
    "ask();\n"
    "</script>\n",
};

void page_answer(struct answer *a, struct buf *out)
{
    a->type = "text/html; charset=utf-8";
    for (size_t i = 0; i < COUNT(page); i++)
        buf_put(out, page[i], strlen(page[i]));
}
