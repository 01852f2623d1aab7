// The topics as bubbles on a plane.

// Pushes overlapping circles {x, y, r} apart, a little, so that each can be seen and hit.
function loosen(circles, width, height) {
  for (let round = 0; round < 100; round += 1) {
    for (let i = 1; i < circles.length; i += 1) {
      for (let j = 0; j < i; j += 1) {
        const [a, b] = [circles[i], circles[j]];
        const [dx, dy] = [a.x - b.x || 0.01 * (i - j), a.y - b.y];
        const distance = Math.hypot(dx, dy);
        const missing = a.r + b.r - distance;
        if (missing <= 0) continue;
        const push = (0.25 * missing) / distance;
        a.x += dx * push;
        a.y += dy * push;
        b.x -= dx * push;
        b.y -= dy * push;
      }
    }
    for (const circle of circles) {
      circle.x = Math.min(Math.max(circle.x, circle.r + 2), width - circle.r - 2);
      circle.y = Math.min(Math.max(circle.y, circle.r + 2), height - circle.r - 2);
    }
  }
}

const topicMap = {
  bubbles: new Map(),

  draw() {
    const holder = byId('map');
    drawToWidth(holder, (width) => this.drawAt(holder, width));
    selection.listen((id) => this.mark(id));
  },

  drawAt(holder, width) {
    const height = Math.min(Math.round(width * 0.82), 460);
    const size = Math.min(width, height);
    const most = Math.max(...report.topics.map((topic) => topic.prevalence));
    const largest = size * Math.min(0.12, 0.46 / Math.sqrt(report.topics.length));
    const xs = report.topics.map((topic) => topic.x);
    const ys = report.topics.map((topic) => topic.y);
    const edge = largest + 4;
    const x = linear(Math.min(...xs), Math.max(...xs), edge, width - edge);
    const y = linear(Math.min(...ys), Math.max(...ys), height - edge, edge);
    const flat = (values) => Math.min(...values) === Math.max(...values);
    const picture = svg('svg', { viewBox: `0 0 ${width} ${height}`, height, role: 'group', 'aria-label': 'Map of topics' });
    const circles = report.topics.map((topic) => ({
      x: flat(xs) ? width / 2 : x(topic.x),
      y: flat(ys) ? height / 2 : y(topic.y),
      r: Math.max(3, largest * Math.sqrt(topic.prevalence / most)),
    }));
    loosen(circles, width, height);
    this.bubbles.clear();
    report.topics.forEach((topic, i) => {
      const place = circles[i];
      const bubble = svg('circle', {
        class: 'bubble', cx: place.x, cy: place.y, r: place.r, role: 'button', tabindex: -1,
        'data-topic': topic.id, 'aria-label': `Topic ${topic.id}: ${topicName(topic, 5)}`,
        onclick: () => selection.choose(topic.id),
        onkeydown: (event) => this.move(event, topic.id),
      });
      tooltip.on(bubble, () => `Topic ${topic.id} · ${format.percent(topic.prevalence)}${topic.label ? ` · ${topic.label}` : ''}\n${topWords(topic, 7).join(', ')}`);
      // A name that would be larger than its bubble stays away; the tooltip has it.
      const name = svg('text', { class: 'bubble-name', visibility: place.r < 8 ? 'hidden' : null, x: place.x, y: place.y, 'aria-hidden': 'true' }, String(topic.id));
      picture.append(bubble);
      this.bubbles.set(topic.id, { bubble, name });
    });
    // Names lie above all bubbles, so that a large neighbour hides none.
    picture.append(...[...this.bubbles.values()].map(({ name }) => name));
    holder.replaceChildren(picture);
    this.mark(selection.topic);
  },

  mark(id) {
    for (const [other, { bubble, name }] of this.bubbles) {
      bubble.setAttribute('aria-pressed', String(other === id));
      bubble.setAttribute('tabindex', other === id ? 0 : -1);
      name.classList.toggle('chosen', other === id);
    }
  },

  // Arrow keys walk through the topics in the order of their size.
  move(event, id) {
    if (isActivation(event)) {
      event.preventDefault();
      selection.open(id);
    }
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = neighbour(id, step);
    selection.choose(next);
    this.bubbles.get(next).bubble.focus();
  },

  // Fades the topics that do not use a word; null shows all again.
  highlight(word) {
    const users = word === null ? null : new Set(topicsOfWord(word).map(([id]) => id));
    for (const [id, { bubble }] of this.bubbles) bubble.classList.toggle('faded', users !== null && !users.has(id));
  },
};
