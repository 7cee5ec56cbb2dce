// The plans of the page, as fl/view/Page.cpp writes them, and the units that a stage is drawn as.
//
// A unit is an item, or a kernel that opens to its items, or a section that opens to further units.
// Sections keep what is shown at once, and so the time of its layout, small.

const MOST_UNITS = 100;
const FEWEST_UNITS = 4;   // that are worth a section of their line
const MOST_OPENED = 150;  // units of sections that are open because of what changed in them

function readPlans() {
  return [...document.querySelectorAll('script.plan')].map(
      element => readPlan(JSON.parse(element.textContent)));
}

function readPlan(plan) {
  const expand = items => items.forEach((item, id) => {
    item.id = id;
    for (const key of ['op', 'attrs', 'type', 'line', 'buffers']) {
      item[key] = item[key] === undefined ? '' : plan.texts[item[key]];
    }
    item.in = item.in || [];
  });
  plan.kernels.forEach(kernel => expand(kernel.items));
  plan.stages.forEach((stage, i) => {
    const before = plan.stages[i - 1];
    if (stage.same) {
      Object.assign(
          stage, {...before, name: stage.name, why: stage.why, same: true, compares: true});
    } else {
      expand(stage.items);
    }
    stage.gone = goneFrom(before, stage);
    stage.newGroups = newGroups(before, stage);
  });
  addTimes(plan);
  plan.open = new Set();    // keys of units
  plan.opened = new Set();  // those among them that are open because of what changed in the stage
  return plan;
}

// To the steps of the last stage, which stages before it may share.
function addTimes(plan) {
  const last = plan.stages[plan.stages.length - 1];
  last.items = last.items.map(item => ({...item}));
  const steps = last.items.filter(item => !item.parameter);
  plan.times.forEach(({step, us, together}) => Object.assign(steps[step], {us, together}));
}

// Items of the stage before that nothing of `stage` stands for.
function goneFrom(before, stage) {
  if (!before || !stage.compares || stage.same) return new Set();
  const kept = new Set(stage.items.map(item => item.before));
  return new Set(before.items.filter(item => !kept.has(item.id)).map(item => item.id));
}

// Kernels that the stage before does not have.
function newGroups(before, stage) {
  const texts = (each, idOf) => {
    const members = (each.groups || []).map(group => [group.title, group.again]);
    each.items.forEach(item => item.group !== undefined && members[item.group].push(idOf(item.id)));
    return members.map(member => member.join());
  };
  const old = new Set(before && stage.compares ? texts(before, id => id) : []);
  const groups = stage.groups || [];
  const now = texts(stage, id => beforeOf(stage, id));
  return new Set(stage.same ? [] : groups.filter((_, i) => !old.has(now[i])));
}

const KINDS = ['gone', 'new', 'changed'];  // of changes, the most telling first

const beforeOf = (stage, id) => stage.same ? id : stage.items[id].before;
const afterOf = (stage, id) => stage.same ? id : stage.items.findIndex(item => item.before === id);
const changeOf = (stage, item) => stage.same ? undefined : item.change;

// The units of a stage, each behind those that it reads.
function unitsOf(plan, stage, withInputs) {
  const key = text => `${stage.form} ${text}`;
  const members = (stage.groups || []).map(() => []);
  const units = [];
  for (const item of stage.items) {
    if (item.parameter && !withInputs) continue;
    const unit =
        {key: key(`item ${item.id}`), kind: kindOf(item), item, ids: [item.id], items: stage.items};
    if (item.group !== undefined) {
      members[item.group].push(unit);
      continue;
    }
    if (item.kernel !== undefined)
      unit.children = kernelUnits(unit.key, plan.kernels[item.kernel].items);
    units.push(unit);
  }
  members.forEach((children, i) => units.push({
    key: key(`group ${i}`),
    kind: 'kernel',
    group: stage.groups[i],
    children,
    ids: children.map(unit => unit.item.id),
    items: stage.items,
  }));
  return bundled(inOrder(units), key('all'));
}

function kindOf(item) {
  if (item.parameter) return 'parameter';
  if (item.kernel !== undefined) return 'kernel';
  return item.library ? 'library' : 'item';
}

function kernelUnits(key, items) {
  return items.map(
      item => ({key: `${key} ${item.id}`, kind: 'item', item, inner: true, ids: [item.id], items}));
}

// Which of the units, if any, holds an item.
function ownersOf(units) {
  const owners = new Map();
  units.forEach((unit, i) => unit.ids.forEach(id => owners.set(id, i)));
  return owners;
}

// The units that a unit reads, as indices.
function sourcesOf(unit, owners) {
  const sources = new Set();
  for (const id of unit.ids) {
    for (const operand of unit.items[id].in) sources.add(owners.get(operand));
  }
  sources.delete(undefined);
  return sources;
}

// Units behind those that they read, by a walk in depth without recursion.
function inOrder(units) {
  const owners = ownersOf(units);
  const state = units.map(() => 0);  // 1 while its sources are visited, 2 when it is placed
  const order = [];
  const first = units.map((_, i) => i).sort((a, b) => units[a].ids[0] - units[b].ids[0]);
  for (const start of first) {
    const stack = [start];
    while (stack.length > 0) {
      const i = stack[stack.length - 1];
      if (state[i] === 0) {
        state[i] = 1;
        for (const source of sourcesOf(units[i], owners)) {
          if (state[source] === 0) stack.push(source);
        }
      } else {
        stack.pop();
        if (state[i] === 1) order.push(units[i]);
        state[i] = 2;
      }
    }
  }
  return order;
}

const lineOf = unit => unit.items[unit.ids[0]].line;

// The same units, in sections where they are many: neighbours of one line and module, and as many
// neighbours as may be shown.
function bundled(units, key) {
  if (units.length <= MOST_UNITS) return units;
  const runs = [];
  for (const unit of units) {
    const run = runs[runs.length - 1];
    run && lineOf(run[0]) === lineOf(unit) ? run.push(unit) : runs.push([unit]);
  }
  const counts = new Map();
  return cut(
      runs.flatMap(run => {
        const line = lineOf(run[0]);
        if (line === '' || run.length < FEWEST_UNITS) return run;
        const count = (counts.get(line) || 0) + 1;
        counts.set(line, count);
        const name = `${key} ${line} ${count}`;
        return [{...sectionOf(run, name, cut(run, name)), line}];
      }),
      key);
}

function cut(units, key) {
  let size = 1;
  while (units.length / size > MOST_UNITS) size *= MOST_UNITS;
  if (size === 1) return units;
  const sections = [];
  for (let i = 0; i < units.length; i += size) {
    const part = units.slice(i, i + size);
    const name = `${key} ${i}`;
    sections.push(sectionOf(part, name, cut(part, name)));
  }
  return sections;
}

const sectionOf = (units, key, children) => ({
  key,
  kind: 'section',
  children,
  ids: units.flatMap(unit => unit.ids),
  items: units[0].items,
});

// The units around an item, the outermost first; empty if it is not drawn.
function pathTo(units, id) {
  const path = [];
  for (let level = units; level;) {
    const unit = level.find(each => each.ids.includes(id));
    if (!unit) break;
    path.push(unit);
    level = unit.item ? undefined : unit.children;
  }
  return path;
}

const UNITS_OF_BYTES = [[1e9, 'GB'], [1e6, 'MB'], [1e3, 'kB']];

function bytesInWords(bytes) {
  const [scale, unit] = UNITS_OF_BYTES.find(([size]) => bytes >= size) || [1, 'B'];
  return `${+ (bytes / scale).toPrecision(3)} ${unit}`;
}

const timeInWords = us =>
    us < 1000 ? `${us.toPrecision(3)} us` : `${(us / 1000).toPrecision(3)} ms`;

const shortened = (text, length) => text.length > length ? `${text.slice(0, length - 1)}…` : text;

// The id of a kernel stands last, and stays.
function shortenedName(name, length) {
  const end = name.lastIndexOf(' ');
  return shortened(name.slice(0, end), length - name.length + end) + name.slice(end);
}

// Of "apps/mnist/Train.cpp:9 (in Linear (16->32) (with bias))" the file's name with the line, and
// the module.
function placeOf(text) {
  const [, line, module] = text.match(/([^/ ]*)(?: \(in (.*)\))?$/);
  return {line, module};
}

const rangeOf = ({ids, items}) => `${items[ids[0]].name} … ${items[ids[ids.length - 1]].name}`;

// "3 changed, 1 gone", of the boxes in a section.
function changesIn(unit) {
  const count = kind => unit.marks.filter(mark => mark === kind).length;
  return KINDS.filter(kind => count(kind) > 0).map(kind => `${count(kind)} ${kind}`).join(', ');
}

function titleOf(unit) {
  if (unit.kind === 'section') {
    const count = `${unit.ids.length} nodes`;
    if (!unit.line) return `${count}, ${rangeOf(unit)}`;
    const {line, module} = placeOf(unit.line);
    return `${count} ${module ? `in ${shortened(module, 30)}` : `at ${line}`}`;
  }
  if (unit.group) return shortened(unit.ids.map(id => unit.items[id].op).join(' '), 34);
  const {name, op, kernel} = unit.item;
  return `${name} ${kernel === undefined ? op : shortenedName(op, 40)}`;
}

function subtitleOf(unit) {
  if (unit.kind === 'section') {
    const lines = [...new Set(unit.ids.map(id => unit.items[id].line))].join(' ');
    const place = unit.line ? `${rangeOf(unit)}, ${placeOf(unit.line).line}` : lines;
    return [changesIn(unit), shortened(place, 40)].filter(text => text !== '').join('; ');
  }
  if (unit.group) return shortened(`${unit.ids.length} nodes, ${unit.group.title}`, 40);
  const {item} = unit;
  const parts = [item.type || shortened(item.attrs.trim(), 30)];
  if (item.kernel !== undefined) parts.push(bytesInWords(item.bytes));
  if (item.us !== undefined) parts.push(timeInWords(item.us));
  return parts.join(', ');
}
