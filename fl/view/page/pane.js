// A pane: the units of one stage, drawn and moved by D3.

const SMALLEST_START = 0.7;  // below it, text cannot be read

// Of what changed in a unit; in an open section its boxes say it themselves.
function classOf(unit, isOpen) {
  if (unit.inner || (unit.kind === 'section' && isOpen)) return '';
  return KINDS.find(kind => unit.marks.includes(kind)) || '';
}

class Pane {
  // onClick(pane, unit); redraw() draws all panes
  constructor(element, onClick, redraw) {
    this.element = d3.select(element);
    this.svg = this.element.select('svg');
    this.onClick = onClick;
    this.redraw = redraw;
    this.canvas = this.svg.append('g');
    this.zoom = d3.zoom().scaleExtent([0.02, 4]).on('zoom', () => {
      this.canvas.attr('transform', d3.event.transform);
      this.countOutside();
    });
    this.svg.call(this.zoom).on('dblclick.zoom', null);
    this.outside = this.element.select('button.outside').on('click', () => this.seekMarked());
  }

  // For draw(). `marks(item)` gives an item's class, `hasNewGroups` says whether new kernels are
  // marked.
  show(plan, stage, withInputs, marks, hasNewGroups) {
    this.hasNewGroups = hasNewGroups;
    this.stage = stage;
    this.marks = marks;
    this.plan = plan;
    this.units = stage ? unitsOf(plan, stage, withInputs) : [];
    this.units.forEach(unit => this.setMarks(unit));
    this.sought = -1;
  }

  // What changed in a unit, one kind a box, and the first item of it.
  setMarks(unit) {
    if (unit.inner) return;
    (unit.children || []).forEach(child => this.setMarks(child));
    if (unit.kind !== 'section') {
      const kind = this.changeIn(unit);
      Object.assign(unit, {marks: kind ? [kind] : [], first: unit.ids[0]});
      return;
    }
    const changed = unit.children.filter(child => child.marks.length > 0);
    unit.marks = changed.flatMap(child => child.marks);
    unit.first = d3.min(changed, child => child.first);
  }

  changeIn(unit) {
    const all = unit.ids.map(id => this.marks(unit.items[id]));
    if (this.hasNewGroups && unit.group && this.stage.newGroups.has(unit.group)) all.push('new');
    return KINDS.find(kind => all.includes(kind));
  }

  // Opens the first sections that hold changes, as many as may be.
  openMarked() {
    let left = MOST_OPENED;
    const waiting = [...this.units];
    while (waiting.length > 0) {
      const unit = waiting.shift();
      if (unit.kind !== 'section' || unit.marks.length === 0) continue;
      if (!this.plan.open.has(unit.key)) {
        if (unit.children.length > left) continue;
        this.plan.open.add(unit.key);
        this.plan.opened.add(unit.key);
      }
      left -= unit.children.length;
      waiting.unshift(...unit.children);
    }
  }

  draw() {
    this.layout = layoutOf({children: this.units, ids: []}, this.plan.open);
    this.canvas.selectAll('*').remove();
    this.drawInside(this.canvas, this.layout);
    this.countOutside();
  }

  drawInside(parent, layout) {
    const line = d3.line().x(point => point.x).y(point => point.y).curve(d3.curveBasis);
    parent.selectAll('path.edge')
        .data(layout.edges)
        .enter()
        .append('path')
        .attr('class', edge => `edge${edge.far ? ' far' : ''}`)
        .attr('d', edge => line(edge.points));
    const pane = this;
    parent.selectAll('g.unit')
        .data(layout.children)
        .enter()
        .append('g')
        .attr(
            'transform',
            child => `translate(${child.x - child.width / 2},${child.y - child.height / 2})`)
        .on('click',
            child => {
              d3.event.stopPropagation();
              this.onClick(this, child.unit);
            })
        .each(function(child) {
          pane.drawUnit(d3.select(this), child);
        });
  }

  drawUnit(group, layout) {
    const {unit} = layout;
    const isOpen = layout.children.length > 0;
    group.attr('class', `unit ${unit.kind}${isOpen ? ' open' : ''} ${classOf(unit, isOpen)}`)
        .attr('data-key', unit.key);
    group.append('rect').attr('width', layout.width).attr('height', layout.height);
    group.append('text').text(titleOf(unit)).attr('y', 15).attr('x', isOpen ? 8 : layout.width / 2);
    if (isOpen) {
      this.drawInside(group, layout);
    } else {
      group.append('text')
          .attr('class', 'sub')
          .text(subtitleOf(unit))
          .attr('y', 29)
          .attr('x', layout.width / 2);
    }
  }

  // Gives a class to the units, as far as they are drawn, that hold items of which `test` is true.
  mark(name, test) {
    this.canvas.selectAll('g.unit').classed(
        name,
        layout => !layout.unit.inner && (layout.unit.item || !this.isOpen(layout)) &&
            layout.unit.ids.some(id => test(layout.unit.items[id])));
  }

  isOpen(layout) {
    return layout.children.length > 0;
  }

  // Opens what an item is in; whether anything was closed.
  reveal(id) {
    const closed =
        pathTo(this.units, id)
            .filter(unit => unit.children && !unit.item && !this.plan.open.has(unit.key));
    closed.forEach(unit => this.plan.open.add(unit.key));
    return closed.length > 0;
  }

  // The place of an item's innermost unit that is drawn, if there is one.
  placeOf(id) {
    let x = 0, y = 0, layout = this.layout;
    for (;;) {
      const child = layout.children.find(each => each.unit.ids.includes(id) && !each.unit.inner);
      if (!child)
        return layout === this.layout ? undefined :
                                        {x: x + layout.width / 2, y: y + layout.height / 2};
      x += child.x - child.width / 2;
      y += child.y - child.height / 2;
      layout = child;
    }
  }

  centre(id) {
    const place = this.placeOf(id);
    if (place) this.svg.call(this.zoom.translateTo, place.x, place.y);
  }

  // All of it, or as much of the top as can be read; of what changed, at least one in sight.
  // Whether that is not at the top.
  fit() {
    if (this.units.length === 0) return false;
    const {width, height} = this.svg.node().getBoundingClientRect();
    const {layout} = this;
    const scale = Math.min(
        1, Math.max(SMALLEST_START, Math.min(width / layout.width, height / layout.height)));
    const isWide = scale * layout.width > width;
    const middle = isWide ? layout.children[0].x : layout.width / 2;
    this.svg.call(
        this.zoom.transform, d3.zoomIdentity.translate(width / 2 - scale * middle, 4).scale(scale));
    const marked = this.marked(), isFar = marked.every(node => this.isOutside(node));
    if (isFar) this.seekMarked();
    return isFar && marked.length > 0;
  }

  // What is drawn of what changed.
  marked() {
    return this.canvas.selectAll('g.new, g.changed, g.gone').nodes();
  }

  isOutside(node) {
    const box = node.getBoundingClientRect(), seen = this.svg.node().getBoundingClientRect();
    return box.right < seen.left || box.left > seen.right || box.bottom < seen.top ||
        box.top > seen.bottom;
  }

  // The units of what changed that is out of sight, or in a closed section.
  hidden() {
    return this.marked()
        .map(node => ({node, unit: d3.select(node).datum().unit}))
        .filter(({node, unit}) => unit.kind === 'section' || this.isOutside(node))
        .map(({unit}) => unit);
  }

  countOutside() {
    const count = d3.sum(this.hidden(), unit => unit.marks.length);
    this.outside.text(`${count} marked outside`).style('display', count > 0 ? null : 'none');
  }

  // Moves to the next of them, in turn, and opens the sections that it is in.
  seekMarked() {
    const places = this.hidden().map(unit => unit.first).sort((a, b) => a - b);
    if (places.length === 0) return;
    this.sought = places.find(id => id > this.sought) || places[0];
    const closed = pathTo(this.units, this.sought)
                       .filter(unit => unit.kind === 'section' && !this.plan.open.has(unit.key));
    closed.forEach(unit => this.plan.open.add(unit.key));
    if (closed.length > 0) this.redraw();
    this.centre(this.sought);
  }
}
