// The data, elements, numbers and the tooltip. Text only ever becomes a text node, never markup.

const report = JSON.parse(document.getElementById('report-data').textContent);
const byId = (id) => document.getElementById(id);
const reducedMotion = matchMedia('(prefers-reduced-motion: reduce)');

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, '');
    else if (value !== null && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

function html(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
}

// Within isolates, as words from right to left would turn round the figures beside them.
const alone = (name) => `\u2068${name}\u2069`;

const numberOf = (digits) => new Intl.NumberFormat('en', { maximumSignificantDigits: digits });
const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const compactNumber = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });
const withMinus = (text) => text.replace('-', '\u2212');
const format = {
  whole: (value) => whole.format(value),
  compact: (value) => withMinus(compactNumber.format(value)),
  number: (value, digits = 4) => withMinus(numberOf(digits).format(value)),
  fixed: (value, digits) => withMinus(value.toFixed(digits)),
  percent: (part) => (part > 0 && part < 0.0005 ? '< 0.1%' : `${(100 * part).toFixed(1)}%`),
  seconds(value) {
    if (value < 60) return `${numberOf(2).format(value)} s`;
    const minutes = Math.round(value / 60);
    return minutes < 60 ? `${minutes} min` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  },
  plural: (count, one) => `${whole.format(count)} ${one}${count === 1 ? '' : 's'}`,
};

const tooltip = {
  node: byId('tooltip'),
  show(text, x, y) {
    this.node.textContent = text;
    this.node.hidden = false;
    const box = this.node.getBoundingClientRect();
    const left = Math.min(Math.max(8, x - box.width / 2), innerWidth - box.width - 8);
    const above = y - box.height - 14;
    this.node.style.left = `${left}px`;
    this.node.style.top = `${above > 8 ? above : y + 18}px`;
  },
  hide() { this.node.hidden = true; },
  // Shows what `text` says while the pointer is on the node, or the keyboard.
  on(node, text) {
    node.addEventListener('pointermove', (event) => this.show(text(), event.clientX, event.clientY));
    node.addEventListener('pointerleave', () => this.hide());
    node.addEventListener('focus', () => {
      if (!node.matches(':focus-visible')) return;
      const box = node.getBoundingClientRect();
      this.show(text(), box.left + box.width / 2, box.top);
    });
    node.addEventListener('blur', () => this.hide());
    return node;
  },
};
addEventListener('keydown', (event) => { if (event.key === 'Escape') tooltip.hide(); });
addEventListener('scroll', () => tooltip.hide(), { passive: true });

// A picture is laid out for this width at least, and scaled down where there is less.
const leastWidth = 240;

// Draws into a holder whenever its width changes.
function drawToWidth(holder, draw) {
  let drawn = 0;
  new ResizeObserver(() => {
    const width = Math.max(leastWidth, holder.clientWidth);
    if (holder.clientWidth === 0 || width === drawn) return;
    drawn = width;
    draw(width);
  }).observe(holder);
}

const isActivation = (event) => event.key === 'Enter' || event.key === ' ';

// The topic that is open; whoever shows it listens.
const selection = {
  topic: report.topics[0].id,
  listeners: [],
  listen(listener) { this.listeners.push(listener); },
  choose(id) {
    this.topic = id;
    for (const listener of this.listeners) listener(id);
  },
  // The address names the topic that is open, so that it can be kept and sent.
  follow() {
    const named = () => {
      const id = Number((/^#topic-(\d+)$/.exec(location.hash) || [])[1]);
      return topicById.has(id) ? id : null;
    };
    const first = named();
    if (first !== null) this.open(first);
    this.listen((id) => history.replaceState(null, '', `#topic-${id}`));
    addEventListener('hashchange', () => { if (named() !== null) this.open(named()); });
  },
  open(id) {
    this.choose(id);
    const smooth = reducedMotion.matches ? 'auto' : 'smooth';
    byId('detail').focus({ preventScroll: true });
    byId('detail').scrollIntoView({ behavior: smooth, block: 'start' });
  },
};

const topicById = new Map(report.topics.map((topic) => [topic.id, topic]));
