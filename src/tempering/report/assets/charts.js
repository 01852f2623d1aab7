// Lines and columns, drawn as SVG. A pointer shows values; so do the arrow keys.

const margin = { left: 54, right: 10, top: 10, bottom: 34 };

function linear(from, to, start, end) {
  const span = to - from || 1;
  return (value) => start + ((value - from) / span) * (end - start);
}

// Round numbers that cover a range.
function ticks(low, high, count) {
  const span = high - low;
  if (!(span > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(span / count));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= span / count);
  const found = [];
  for (let i = Math.ceil(low / step); i * step <= high + 1e-9 * span; i += 1) found.push(i * step);
  return found;
}

// Enough digits that neighbouring ticks differ.
function tickText(values) {
  const size = Math.max(...values.map(Math.abs));
  if (size >= 10000 && values.length > 1) {
    const digits = Math.ceil(Math.log10(size / (values[1] - values[0]))) + 1;
    const shorter = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: Math.max(2, digits) });
    return (value) => withMinus(shorter.format(value));
  }
  return size >= 10000 ? format.compact : (value) => format.number(value, 5);
}

function axes(picture, width, height, x, y, xTicks, yTicks, label) {
  const bottom = height - margin.bottom;
  const [xText, yText] = [tickText(xTicks), tickText(yTicks)];
  for (const value of yTicks) {
    picture.append(
      svg('line', { class: 'gridline', x1: margin.left, x2: width - margin.right, y1: y(value), y2: y(value) }),
      svg('text', { x: margin.left - 8, y: y(value) + 4, 'text-anchor': 'end' }, yText(value)),
    );
  }
  for (const value of xTicks) {
    picture.append(svg('text', { x: x(value), y: bottom + 16, 'text-anchor': 'middle' }, xText(value)));
  }
  picture.append(
    svg('line', { class: 'axis', x1: margin.left, x2: width - margin.right, y1: bottom, y2: bottom }),
    svg('text', { x: (margin.left + width - margin.right) / 2, y: height - 3, 'text-anchor': 'middle' }, label),
  );
}

// One curve of [x, y] points. `shade` is where a shaded part begins; `say` names a point.
function lineChart({ name, title, points, shade, say, label }) {
  const readout = html('p', { class: 'readout', 'aria-live': 'polite' });
  const holder = html('div', { class: 'chart' });
  const height = 210;
  const xs = points.map((point) => point[0]);
  const ys = points.map((point) => point[1]);
  const last = points.length - 1;
  const [low, high] = [Math.min(...ys), Math.max(...ys)];
  const pad = (high - low || Math.abs(high) * 0.05 || 1) * 0.08;

  drawToWidth(holder, (width) => {
    const x = linear(xs[0], xs[last], margin.left, width - margin.right);
    const y = linear(low - pad, high + pad, height - margin.bottom, margin.top);
    const picture = svg('svg', {
      viewBox: `0 0 ${width} ${height}`, height, role: 'img', tabindex: 0,
      'aria-label': `${title}: from ${say(points[0])} to ${say(points[last])}. Arrow keys read the values.`,
    });
    if (shade !== null && shade < xs[last]) {
      const left = Math.max(x(shade), margin.left);
      picture.append(
        svg('rect', { class: 'phase', x: left, y: margin.top, width: width - margin.right - left, height: height - margin.top - margin.bottom }),
        svg('text', { x: left + 6, y: margin.top + 14 }, 'T = 1'),
      );
    }
    axes(picture, width, height, x, y, ticks(xs[0], xs[last], width / 90), ticks(low - pad, high + pad, 6), label);
    const path = points.map((point) => `${x(point[0]).toFixed(1)},${y(point[1]).toFixed(1)}`).join(' ');
    picture.append(svg('polyline', { class: `curve ${name}`, points: path }));
    const cross = svg('line', { class: 'cross', y1: margin.top, y2: height - margin.bottom, visibility: 'hidden' });
    const dot = svg('circle', { class: `dot ${name}`, r: 4.5, cx: x(xs[last]), cy: y(ys[last]) });
    picture.append(cross, dot);
    let at = last;

    function mark(index) {
      at = Math.min(Math.max(index, 0), last);
      const place = x(xs[at]);
      for (const [key, value] of Object.entries({ x1: place, x2: place, visibility: 'visible' })) cross.setAttribute(key, value);
      dot.setAttribute('cx', place);
      dot.setAttribute('cy', y(ys[at]));
      readout.textContent = say(points[at]);
    }
    function leave() {
      mark(last);
      cross.setAttribute('visibility', 'hidden');
    }
    picture.addEventListener('pointermove', (event) => {
      const place = event.clientX - picture.getBoundingClientRect().left;
      let nearest = 0;
      for (let i = 1; i <= last; i += 1) {
        if (Math.abs(x(xs[i]) - place) < Math.abs(x(xs[nearest]) - place)) nearest = i;
      }
      mark(nearest);
    });
    picture.addEventListener('pointerleave', leave);
    picture.addEventListener('blur', leave);
    picture.addEventListener('keydown', (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, Home: -points.length, End: points.length }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      mark(at + step * (event.shiftKey ? 10 : 1));
    });
    holder.replaceChildren(picture);
  });
  readout.textContent = say(points[last]);
  return html('figure', { class: `card figure-${name}` }, html('h3', {}, title), readout, holder);
}

// Columns over bins. `say` names a bin by its index.
function histogram({ title, edges, counts, label, say }) {
  const holder = html('div', { class: 'chart' });
  const readout = html('p', { class: 'readout', 'aria-live': 'polite' }, 'Point at a column, or use the arrow keys.');
  const height = 220;
  const most = Math.max(...counts);
  drawToWidth(holder, (width) => {
    const x = linear(edges[0], edges[edges.length - 1], margin.left, width - margin.right);
    const y = linear(0, most, height - margin.bottom, margin.top);
    const picture = svg('svg', { viewBox: `0 0 ${width} ${height}`, height, role: 'img', tabindex: 0, 'aria-label': title });
    axes(picture, width, height, x, y, ticks(edges[0], edges[edges.length - 1], width / 90), ticks(0, most, 4), label);
    const columns = counts.map((count, i) => {
      const [left, right] = [x(edges[i]), x(edges[i + 1])];
      const column = svg('rect', {
        class: 'column', x: left + 0.5, width: Math.max(right - left - 1, 0.5),
        y: y(count), height: Math.max(height - margin.bottom - y(count), count > 0 ? 1 : 0),
      });
      const hit = svg('rect', { class: 'column-hit', x: left, width: right - left, y: margin.top, height: height - margin.top - margin.bottom });
      hit.addEventListener('pointerenter', () => mark(i));
      picture.append(hit, column);
      column.setAttribute('pointer-events', 'none');
      return column;
    });
    let at = -1;
    function mark(index) {
      at = Math.min(Math.max(index, 0), counts.length - 1);
      columns.forEach((column, i) => column.classList.toggle('on', i === at));
      readout.textContent = say(at);
    }
    picture.addEventListener('keydown', (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      mark(at + step);
    });
    holder.replaceChildren(picture);
  });
  return html('figure', { class: 'card' }, html('h3', {}, title), readout, holder);
}
