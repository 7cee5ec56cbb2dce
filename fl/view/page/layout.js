// Places of units: dagre lays out the units of each open unit by themselves, the inner ones first.

const LAYOUT = {
  nodesep: 14,
  ranksep: 26,
  marginx: 10,
  marginy: 10,
  ranker: 'tight-tree'
};
const TITLE_HEIGHT = 22;
// dagre makes a node of each layer that an edge crosses. Edges that span the fewest units take part
// in the layout, up to so many units together; the others are drawn beside it.
const MOST_SPANNED = 400;
const FAR_BEND = 6;  // to the side, for each unit that is spanned

const widthOfText = (text, size) => text.length * size * 0.62;

// {unit, width, height, x, y: its centre in the box around it, children, edges}
function layoutOf(unit, open) {
  if (!unit.children || !(unit.key === undefined || open.has(unit.key))) {
    const width = Math.max(widthOfText(titleOf(unit), 12), widthOfText(subtitleOf(unit), 10)) + 16;
    return {unit, width, height: 36, children: [], edges: []};
  }
  const children = unit.children.map(child => layoutOf(child, open));
  const edges = edgesBetween(unit.children);
  const graph = new dagre.graphlib.Graph().setGraph({...LAYOUT}).setDefaultEdgeLabel(() => ({}));
  children.forEach((child, i) => graph.setNode(i, child));
  let spanned = 0;
  for (const edge of [...edges].sort((a, b) => spanOf(a) - spanOf(b))) {
    spanned += spanOf(edge);
    edge.far = spanned > MOST_SPANNED;
    if (!edge.far) graph.setEdge(edge.from, edge.to, edge);
  }
  dagre.layout(graph);
  const {width, height} = graph.graph();
  const title = unit.key === undefined ? 0 : TITLE_HEIGHT;
  children.forEach(child => {
    child.y += title;
  });
  edges.forEach(edge => {
    if (edge.far) {
      edge.points = bentPoints(children[edge.from], children[edge.to], FAR_BEND * spanOf(edge));
    } else {
      edge.points.forEach(point => {
        point.y += title;
      });
    }
  });
  const minimum = title ? widthOfText(titleOf(unit), 12) + 16 : 0;
  // dagre's width is that of the nodes.
  const right = d3.max(edges, edge => d3.max(edge.points, point => point.x)) || 0;
  const all = Math.max(width, right + LAYOUT.marginx, minimum);
  return {unit, width: all, height: height + title, children, edges};
}

const spanOf = edge => edge.to - edge.from;

function bentPoints(from, to, bend) {
  const middle = {x: Math.max(from.x, to.x) + bend, y: (from.y + to.y) / 2};
  return [{x: from.x, y: from.y}, middle, {x: to.x, y: to.y}];
}

// Units stand in an order in which edges lead forward.
function edgesBetween(units) {
  const owners = ownersOf(units);
  const edges = [];
  units.forEach((unit, to) => {
    for (const from of sourcesOf(unit, owners)) {
      if (from !== to) edges.push({from, to});
    }
  });
  return edges;
}
