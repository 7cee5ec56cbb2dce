// What is known of one item, group or kernel, as text.

const LEVELS = {
  text: 'kernel',
  ll: 'LLVM',
  s: 'assembly',
  cu: 'CUDA',
  ptx: 'PTX'
};

const timeOf = item => timeInWords(item.us) +
    (item.together > 1 ? `, of ${item.together} steps that run together` : '');

// `select(id)` is called for an operand that is clicked.
function showItem(element, plan, stage, item, select) {
  const change = changeOf(stage, item);
  const rows = [
    ['type', item.type],
    ['attributes', item.attrs.trim()],
    [
      stage.form === 'schedule' && !item.parameter ? 'bytes moved' : 'bytes',
      item.bytes && `${item.bytes}`
    ],
    ['time', item.us === undefined ? '' : timeOf(item)],
    ['line', item.line],
    ['change', change || ''],
    ['result', (stage.results || []).includes(item.id) ? 'yes' : ''],
  ];
  element.html('').append('h3').text(`${item.name} ${item.op}`);
  const table = element.append('table');
  addRows(table, rows);
  addLinks(table, 'reads', item.in, stage.items, select);
  const users = stage.items.filter(each => each.in.includes(item.id)).map(each => each.id);
  addLinks(table, 'read by', users, stage.items, select);
  if (item.buffers) addRow(table, 'buffers').append('pre').text(item.buffers.trim());
  if (item.kernel !== undefined) showKernel(element, plan.kernels[item.kernel]);
}

function showGroup(element, stage, unit, select) {
  element.html('').append('h3').text('fused kernel');
  const table = element.append('table');
  addRows(
      table, [['space', unit.group.title], ['again', unit.group.again], ['cost', unit.group.cost]]);
  addLinks(table, 'nodes', unit.ids, stage.items, select);
}

// Without a choice: the plan, and its last schedule's kernels.
function showPlan(element, plan, select) {
  const last = plan.stages[plan.stages.length - 1];
  element.html('').append('h3').text(plan.name);
  const table = element.append('table');
  const {memory} = plan;
  addRows(table, [
    ['passes', `${plan.stages.length}`],
    ['arena', memory ? `${memory.arena} bytes` : ''],
    ['bound', memory ? `${memory.bound} bytes` : ''],
    [
      'time',
      last.items.some(item => item.us) ? timeInWords(d3.sum(last.items, item => item.us)) : ''
    ],
  ]);
  d3.nest()
      .key(item => item.kernel)
      .entries(last.items.filter(item => item.kernel !== undefined))
      .forEach(
          ({values}, i) => addLinks(
              table, i === 0 ? 'kernels' : '', values.slice(0, 1).map(item => item.id), last.items,
              select,
              item => `${item.op}, ${values.length} launch${values.length > 1 ? 'es' : ''}`));
}

function showKernel(element, kernel) {
  const levels = Object.keys(LEVELS).filter(level => kernel[level]);
  const buttons = element.append('p');
  const code = element.append('pre').attr('class', 'code');
  const show = level => {
    code.text(kernel[level]);
    buttons.selectAll('button').classed('shown', each => each === level);
  };
  buttons.selectAll('button')
      .data(levels)
      .enter()
      .append('button')
      .attr('class', 'level')
      .text(level => LEVELS[level])
      .on('click', show);
  show('text');
}

function addRow(table, name) {
  const row = table.append('tr');
  row.append('td').text(name);
  return row.append('td');
}

function addRows(table, rows) {
  rows.filter(([, text]) => text).forEach(([name, text]) => addRow(table, name).text(text));
}

function addLinks(table, name, ids, items, select, label = item => `${item.name} ${item.op}`) {
  if (ids.length === 0) return;
  addRow(table, name)
      .selectAll('a')
      .data(ids)
      .enter()
      .append('a')
      .text(id => label(items[id]))
      .on('click', select);
}
