// How common topics are over time and in groups: tables of all, and a picture of the open one.

// Of a topic that is all but absent from one side, only the lower end says something.
const timesAs = (low, high) => `${high > 1000 ? 'at least ' : ''}${format.number(low, 2)}${high > 1000 ? '' : ` to ${format.number(high, 2)}`} times`;

// "1.8 to 2.4 times", "as common in 2021 as in 1990"; null where the interval leaves a doubt.
function contrast(shares, id) {
  const [one, other, low, high] = shares.contrasts[id];
  if (one === other || (low <= 1 && high >= 1)) return null;
  const [more, less] = [one, other].map((place) => alone(shares.names[place]));
  return high < 1 ? [timesAs(1 / high, 1 / low), `as common in ${less} as in ${more}`] : [timesAs(low, high), `as common in ${more} as in ${less}`];
}

// Of one topic alone, or in one group alone, there is nothing to compare.
function noContrast(shares, id) {
  const places = shares.contrasts[id].slice(0, 2);
  if (places[0] === places[1]) return ['Nothing to compare'];
  return ['No sure difference between', places.map((place) => alone(shares.names[place])).join(' and ')];
}

// How far the interval is from "as common": what a table is sorted by.
function contrastSize(shares, id) {
  const [, , low, high] = shares.contrasts[id];
  return low > 1 ? low : high < 1 ? 1 / Math.max(high, 1e-9) : 0;
}

const shareOf = (shares, kind, id, place) => shares[kind][id][place] / shares.whole;

function shareText(shares, id, place) {
  const [mean, low, high] = ['mean', 'low', 'high'].map((kind) => format.percent(shareOf(shares, kind, id, place)));
  return `${alone(shares.names[place])}: ${mean} (${low} to ${high}) of ${format.plural(shares.documents[place], 'document')}`;
}

// The open topic: means with their intervals, along a line (`inOrder`) or side by side.
function shareChart(shares, id, { title, inOrder }) {
  const holder = html('div', { class: 'chart' });
  const readout = html('p', { class: 'readout', 'aria-live': 'polite' }, (contrast(shares, id) || noContrast(shares, id)).join(' '));
  const names = shares.names;
  const value = (kind, place) => shareOf(shares, kind, id, place);
  const most = Math.max(...names.map((_, place) => value('high', place)), 1e-4);
  const height = 190;
  const bottom = height - margin.bottom;
  drawToWidth(holder, (width) => {
    const slot = (width - margin.left - margin.right) / names.length;
    const x = (place) => margin.left + slot * (place + 0.5);
    const y = linear(0, 1.05 * most, bottom, margin.top);
    const picture = svg('svg', {
      viewBox: `0 0 ${width} ${height}`, height, role: 'img', tabindex: 0,
      'aria-label': `${title} of topic ${id}: ${names.map((_, place) => shareText(shares, id, place)).join('; ')}`,
    });
    for (const tick of ticks(0, 1.05 * most, 4)) {
      picture.append(
        svg('line', { class: 'gridline', x1: margin.left, x2: width - margin.right, y1: y(tick), y2: y(tick) }),
        svg('text', { x: margin.left - 8, y: y(tick) + 4, 'text-anchor': 'end' }, `${format.number(100 * tick, 3)}%`),
      );
    }
    // As many names as there is room for.
    const longest = Math.max(...names.map((name) => name.length));
    const every = Math.ceil((Math.min(longest, 14) * 6.8 + 8) / slot);
    names.forEach((name, place) => {
      if (place % every) return;
      const room = Math.floor((slot * every) / 6.5);
      picture.append(svg('text', { x: x(place), y: bottom + 16, 'text-anchor': 'middle' }, name.length > room ? `${name.slice(0, Math.max(room - 1, 1))}…` : name));
    });
    if (inOrder && names.length > 1) {
      const along = (kind) => names.map((_, place) => `${x(place).toFixed(1)},${y(value(kind, place)).toFixed(1)}`);
      picture.append(
        svg('polygon', { class: 'band', points: [...along('low'), ...along('high').reverse()].join(' ') }),
        svg('polyline', { class: 'curve share', points: along('mean').join(' ') }),
      );
    }
    const dots = names.map((_, place) => {
      if (!inOrder || names.length === 1) {
        picture.append(svg('line', { class: 'whisker', x1: x(place), x2: x(place), y1: y(value('low', place)), y2: y(value('high', place)) }));
      }
      const dot = svg('circle', { class: 'dot share', r: 4, cx: x(place), cy: y(value('mean', place)) });
      picture.append(dot);
      return dot;
    });
    let at = -1;
    function mark(place) {
      at = Math.min(Math.max(place, 0), names.length - 1);
      dots.forEach((dot, i) => dot.setAttribute('r', i === at ? 6 : 4));
      readout.textContent = shareText(shares, id, at);
    }
    picture.addEventListener('pointermove', (event) => {
      const place = event.clientX - picture.getBoundingClientRect().left - margin.left;
      mark(Math.floor(place / slot));
    });
    picture.addEventListener('keydown', (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1, Home: -names.length, End: names.length }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      mark(at + step);
    });
    holder.replaceChildren(picture);
  });
  return html('figure', { class: 'shares' }, html('h4', { class: 'subtitle' }, title), readout, holder);
}

function drawOpenShares(topic) {
  const charts = [];
  if (report.over_time) charts.push(shareChart(report.over_time, topic.id, { title: 'Over time', inOrder: true }));
  if (report.by_group) charts.push(shareChart(report.by_group, topic.id, { title: 'By group', inOrder: false }));
  byId('topic-shares').replaceChildren(...charts);
}

// All topics: a row each, shaded by the share in proportion to the row's largest.
function shareTable(shares, { title, hint, order }) {
  const body = html('tbody');
  const rows = report.topics.map((topic) => {
    const means = shares.mean[topic.id];
    const most = Math.max(...means, 1);
    const cells = means.map((mean, place) => {
      const cell = html('td', { title: shareText(shares, topic.id, place) }, (100 * mean / shares.whole).toFixed(1));
      cell.style.setProperty('--shade', `${Math.round((70 * mean) / most)}%`);
      return cell;
    });
    const open = html('button', { type: 'button', class: 'plain', onclick: () => selection.open(topic.id) },
      html('b', {}, String(topic.id)), ` ${topicName(topic)}`);
    return { topic, row: html('tr', { 'data-topic': topic.id }, html('th', { scope: 'row' }, open), ...cells) };
  });
  const choice = html('select', { 'aria-label': `Order of the topics, ${title}` },
    html('option', { value: 'contrast' }, order), html('option', { value: 'prevalence' }, 'prevalence'), html('option', { value: 'id' }, 'number'));
  const arrange = () => {
    const value = {
      contrast: ({ id }) => -contrastSize(shares, id), prevalence: ({ prevalence }) => -prevalence, id: ({ id }) => id,
    }[choice.value];
    body.replaceChildren(...[...rows].sort((a, b) => value(a.topic) - value(b.topic)).map(({ row }) => row));
  };
  choice.addEventListener('change', arrange);
  arrange();
  const heads = shares.names.map((name, place) => html('th', { scope: 'col', title: format.plural(shares.documents[place], 'document') }, name));
  return html('div', { class: 'card' },
    html('div', { class: 'row wrap' }, html('h3', {}, title, html('span', { class: 'hint' }, hint)), html('label', { class: 'row small' }, 'sorted by ', choice)),
    html('div', { class: 'table', tabindex: 0, role: 'region', 'aria-label': title },
      html('table', {}, html('thead', {}, html('tr', {}, html('th', { scope: 'col' }, 'topic'), ...heads)), body)));
}

function drawShares() {
  if (!report.over_time && !report.by_group) {
    byId('shares').hidden = true;
    byId('shares-link').hidden = true;
    return;
  }
  const hint = 'percent of a document, on average';
  if (report.over_time) byId('share-tables').append(shareTable(report.over_time, { title: 'Over time', hint, order: 'change' }));
  if (report.by_group) byId('share-tables').append(shareTable(report.by_group, { title: 'By group', hint, order: 'difference' }));
}
