// The page: which plan and stage are shown, what is selected and searched for.

const plans = readPlans();
const details = d3.select('#details');
const state = {
  isHit: () => false
};  // plan, stage: its number, hits: items, hit: which of them, isHit(item)
const panes = {
  before: new Pane(document.getElementById('before'), onClick, redraw),
  after: new Pane(document.getElementById('after'), onClick, redraw),
};

function stages() {
  const {plan, stage} = state;
  return {before: plan.stages[stage - 1], after: plan.stages[stage]};
}

function showStage(index) {
  state.stage = Math.max(0, Math.min(index, state.plan.stages.length - 1));
  const {before, after} = stages();
  const {open, opened} = state.plan;
  opened.forEach(key => open.delete(key));
  opened.clear();
  const withInputs = d3.select('#inputs').property('checked');
  d3.select('#before').style('display', before ? null : 'none');
  panes.before.show(
      state.plan, before, withInputs, item => after.gone.has(item.id) ? 'gone' : undefined, false);
  panes.after.show(
      state.plan, after, withInputs, item => after.compares && changeOf(after, item), true);
  panes.before.openMarked();
  panes.after.openMarked();
  panes.before.draw();
  panes.after.draw();
  panes.before.element.select('h2').text(before ? headingOf(before) : '');
  panes.after.element.select('h2').text(headingOf(after, changesOf(after)));
  panes.before.fit();
  if (panes.after.fit()) showWhatWas();
  d3.selectAll('#passes button').classed('shown', (_, i) => i === state.stage);
  showPlan(details, state.plan, selectStep);
  search();
}

// Beside changes in sight, what the first of them was made of, unless something gone is shown.
function showWhatWas() {
  const {after} = stages();
  if (!panes.before.stage || !after.compares || panes.before.marked().length > 0) return;
  const twin = panes.after.marked()
                   .filter(node => !panes.after.isOutside(node))
                   .map(node => beforeOf(after, d3.select(node).datum().unit.first))
                   .find(id => id >= 0);
  if (twin !== undefined) panes.before.centre(twin);
}

// "06_fuse: 67 nodes, 13 kernels new. Why the pass is where it is."
function headingOf(stage, changes = []) {
  const nodes = stage.items.filter(item => !item.parameter).length;
  const counts = [`${nodes} ${stage.form === 'schedule' ? 'steps' : 'nodes'}`, ...changes];
  return `${stage.name}: ${counts.join(', ')}. ${stage.why}`;
}

function changesOf(stage) {
  if (stage.same) return ['no change'];
  const counts = [
    ...['new', 'changed'].map(
        kind => [stage.items.filter(item => item.change === kind).length, kind]),
    [stage.gone.size, 'gone'],
    [stage.newGroups.size, 'kernels new'],
  ];
  return counts.filter(([count]) => count > 0).map(([count, kind]) => `${count} ${kind}`);
}

function onClick(pane, unit) {
  if (unit.children) {
    const {open, opened} = state.plan;
    if (!open.delete(unit.key)) open.add(unit.key);
    opened.delete(unit.key);
    redraw();
  }
  if (unit.item && !unit.inner) {
    select(pane, unit.item.id);
  } else if (unit.group) {
    showGroup(details, pane.stage, unit, id => goTo(pane, id));
  }
}

// What is open is so in both panes, which may have the same kernels.
function redraw() {
  panes.before.draw();
  panes.after.draw();
  markHits();
}

function goTo(pane, id) {
  if (pane.reveal(id)) redraw();
  select(pane, id);
  pane.centre(id);
}

// The other pane shows the same value, or what has the same line where no value is the same.
function select(pane, id) {
  const {after} = stages();
  const isAfter = pane === panes.after;
  const other = isAfter ? panes.before : panes.after;
  const item = pane.stage.items[id];
  showItem(details, state.plan, pane.stage, item, next => goTo(pane, next));
  pane.mark('selected', each => each === item);
  pane.canvas.selectAll('g.unit').classed('line', false);
  if (!other.stage) return;
  const twin = !after.compares ? undefined : isAfter ? beforeOf(after, id) : afterOf(after, id);
  const found = twin !== undefined && twin >= 0;
  other.mark('selected', each => found && each.id === twin);
  other.mark('line', each => !found && item.line !== '' && each.line === item.line);
  if (found) other.centre(twin);
}

// A step of the last stage, which is shown if it is not yet.
function selectStep(id) {
  if (state.stage !== state.plan.stages.length - 1) showStage(state.plan.stages.length - 1);
  goTo(panes.after, id);
}

function textOf(item) {
  const inside =
      item.kernel === undefined ? [] : state.plan.kernels[item.kernel].items.map(each => each.op);
  return [item.name, item.op, item.line, item.type, ...inside].join(' ').toLowerCase();
}

function search() {
  const wanted = d3.select('#search').property('value').trim().toLowerCase();
  const {after} = stages();
  state.isHit = item => wanted !== '' && !item.parameter && textOf(item).includes(wanted);
  state.hits = after.items.filter(state.isHit);
  state.hit = -1;
  d3.select('#hits').text(wanted === '' ? '' : `${state.hits.length} found`);
  markHits();
}

function markHits() {
  panes.before.mark('hit', state.isHit);
  panes.after.mark('hit', state.isHit);
}

function nextHit() {
  if (state.hits.length === 0) return;
  state.hit = (state.hit + 1) % state.hits.length;
  const {id} = state.hits[state.hit];
  goTo(panes.after, id);
  d3.select('#hits').text(`${state.hit + 1} of ${state.hits.length}`);
}

function showPlanNumber(index) {
  state.plan = plans[index];
  const {plan} = state;
  d3.select('#passes').selectAll('button').remove();
  d3.select('#passes')
      .selectAll('button')
      .data(plan.stages)
      .enter()
      .append('button')
      .text(stage => stage.name.replace(/^\d+_/, ''))
      .attr('title', stage => stage.why)
      .classed('same', stage => stage.same)
      .on('click', (_, i) => showStage(i));
  const firstStep = plan.stages[plan.stages.length - 1].items.filter(item => item.parameter).length;
  drawTimeline(
      document.getElementById('timeline'), plan.memory, step => selectStep(firstStep + step));
  showStage(plan.stages.length > 1 ? 1 : 0);
}

d3.select('#plan')
    .selectAll('option')
    .data(plans)
    .enter()
    .append('option')
    .attr('value', (_, i) => i)
    .text(plan => plan.name);
d3.select('#plan').on('change', function() {
  showPlanNumber(+this.value);
  this.blur();  // or it would take the arrow keys
});
d3.select('#search').on('input', search).on('keydown', () => {
  if (d3.event.key === 'Enter') nextHit();
});
d3.select('#inputs').on('change', () => showStage(state.stage));
d3.select(document).on('keydown', () => {
  if (d3.event.target.closest('select, #search')) return;  // where arrows have a meaning
  if (d3.event.key === 'ArrowRight') showStage(state.stage + 1);
  if (d3.event.key === 'ArrowLeft') showStage(state.stage - 1);
});
showPlanNumber(0);
