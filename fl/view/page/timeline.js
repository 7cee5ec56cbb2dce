// The memory of a plan by step, as tools/memory_timeline.py draws it: buffers as boxes, what is
// alive as a curve, the bound as a line.

const MARGIN = {
  left: 60,
  right: 150,
  top: 8,
  bottom: 20
};

// `select(step)` is called for a buffer that is clicked, with the step that makes it.
function drawTimeline(element, memory, select) {
  const svg = d3.select(element).classed('none', !memory);
  svg.selectAll('*').remove();
  if (!memory) return;
  const {width, height} = element.getBoundingClientRect();
  const x =
      d3.scaleLinear().domain([0, memory.steps.length]).range([MARGIN.left, width - MARGIN.right]);
  const y = d3.scaleLinear().domain([0, Math.max(memory.arena, memory.bound, 1) * 1.05]).range([
    height - MARGIN.bottom, MARGIN.top
  ]);
  const colour = d3.scaleOrdinal(d3.schemeTableau10);
  const boxes = svg.selectAll('rect')
                    .data(memory.buffers)
                    .enter()
                    .append('rect')
                    .attr('class', 'buffer')
                    .attr('x', buffer => x(buffer.first))
                    .attr('width', buffer => x(buffer.last + 1) - x(buffer.first))
                    .attr('y', buffer => y(buffer.offset + buffer.bytes))
                    .attr('height', buffer => y(buffer.offset) - y(buffer.offset + buffer.bytes))
                    .classed('narrow', x(1) - x(0) < 3)
                    .attr('fill', buffer => colour(buffer.name))
                    .on('click', buffer => select(buffer.first));
  const names =
      svg.selectAll('text.name')
          .data(memory.buffers.filter(
              buffer => x(buffer.last + 1) - x(buffer.first) > widthOfText(buffer.name, 11) &&
                  y(buffer.offset) - y(buffer.offset + buffer.bytes) > 13));
  names.enter()
      .append('text')
      .attr('class', 'name')
      .text(buffer => buffer.name)
      .attr('x', buffer => x((buffer.first + buffer.last + 1) / 2))
      .attr('y', buffer => y(buffer.offset + buffer.bytes / 2) + 4);
  boxes.append('title').text(
      (buffer, i) => `t${i} ${buffer.name}: ${buffer.bytes} bytes at ${buffer.offset}, steps ${
          buffer.first} to ${buffer.last}`);
  const alive = d3.area().x((_, i) => x(i)).y0(y(0)).y1(bytes => y(bytes)).curve(d3.curveStepAfter);
  const heights = memory.steps.map(step => step.alive);
  svg.append('path').attr('class', 'alive').attr('d', alive.lineY1()([
    ...heights, heights[heights.length - 1]
  ]));
  svg.append('line')
      .attr('class', 'bound')
      .attr('x1', x.range()[0])
      .attr('x2', x.range()[1])
      .attr('y1', y(memory.bound))
      .attr('y2', y(memory.bound));
  svg.append('g')
      .attr('transform', `translate(0,${y(0)})`)
      .call(d3.axisBottom(x).ticks(Math.min(20, memory.steps.length)));
  svg.append('g')
      .attr('transform', `translate(${MARGIN.left},0)`)
      .call(d3.axisLeft(y).ticks(4).tickFormat(bytesInWords));
  const recorded = 'recorded' in memory ? [`recorded ${bytesInWords(memory.recorded)}`] : [];
  const words = [
    `arena ${bytesInWords(memory.arena)}`, `- - bound ${bytesInWords(memory.bound)}`, ...recorded,
    `unplanned ${bytesInWords(memory.unplanned)}`
  ];
  svg.selectAll('text.legend')
      .data(words)
      .enter()
      .append('text')
      .attr('class', 'legend')
      .attr('x', width - MARGIN.right + 10)
      .attr('y', (_, i) => 24 + 18 * i)
      .text(word => word);
}
