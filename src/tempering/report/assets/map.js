// The topics as bubbles on a plane, to be zoomed into.

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

// Shows names, the first ones first, where they meet no other and lie within the picture.
function showApart(names, taken, width, height) {
  for (const { node, x, y, wide, fits } of names) {
    const box = { left: x - wide / 2, right: x + wide / 2, top: y - 7, bottom: y + 7 };
    const inside = box.left >= 0 && box.right <= width && box.top >= 0 && box.bottom <= height;
    const free = fits && inside && taken.every((other) => box.left > other.right || box.right < other.left
      || box.top > other.bottom || box.bottom < other.top);
    node.setAttribute('visibility', free ? 'visible' : 'hidden');
    if (!free) continue;
    node.setAttribute('x', x);
    node.setAttribute('y', y);
    taken.push(box);
  }
}

const topicMap = {
  bubbles: new Map(),
  mostZoom: 16,
  // Up to this zoom, the words of a topic are shown only where they meet no bubble.
  wordsZoom: 2,
  zoom: { scale: 1, x: 0, y: 0 },

  draw() {
    const holder = byId('map');
    drawToWidth(holder, (width) => this.drawAt(holder, width));
    selection.listen((id) => this.mark(id));
    for (const [button, factor] of [['map-in', 2], ['map-out', 0.5], ['map-whole', 0]]) {
      byId(button).addEventListener('click', () => this.zoomBy(factor));
    }
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
      const bubble = svg('circle', {
        class: 'bubble', role: 'button', tabindex: -1,
        'data-topic': topic.id, 'aria-label': `Topic ${topic.id}: ${topicName(topic, 5)}`,
        onclick: () => this.dragged || selection.choose(topic.id),
        onkeydown: (event) => this.move(event, topic.id),
      });
      tooltip.on(bubble, () => `Topic ${topic.id} · ${format.percent(topic.prevalence)}${topic.label ? ` · ${topic.label}` : ''}\n${topWords(topic, 7).join(', ')}`);
      const name = svg('text', { class: 'bubble-name', 'aria-hidden': 'true' }, String(topic.id));
      const said = svg('text', { class: 'bubble-words', 'aria-hidden': 'true' }, topicName(topic, 2));
      picture.append(bubble);
      this.bubbles.set(topic.id, { bubble, name, said, place: circles[i] });
    });
    // Names lie above all bubbles, so that a large neighbour hides none.
    picture.append(...[...this.bubbles.values()].flatMap(({ name, said }) => [name, said]));
    holder.replaceChildren(picture);
    for (const each of this.bubbles.values()) {
      each.wide = [each.name, each.said].map((node) => node.getComputedTextLength() + 4);
    }
    Object.assign(this, { picture, width, height });
    this.listen(picture);
    this.zoomBy(0);
    this.mark(selection.topic);
  },

  // Nearer by a factor, or the whole for 0; the point (x, y) of the picture stays where it is.
  zoomBy(factor, x = this.width / 2, y = this.height / 2) {
    const scale = factor === 0 ? 1 : Math.min(Math.max(this.zoom.scale * factor, 1), this.mostZoom);
    const part = scale / this.zoom.scale;
    this.zoom = { scale, x: x - (x - this.zoom.x) * part, y: y - (y - this.zoom.y) * part };
    this.place();
  },

  place() {
    const { scale } = this.zoom;
    // No further than to the edge of what there is.
    this.zoom.x = Math.min(Math.max(this.zoom.x, this.width * (1 - scale)), 0);
    this.zoom.y = Math.min(Math.max(this.zoom.y, this.height * (1 - scale)), 0);
    const [numbers, texts, circles] = [[], [], []];
    const first = [...this.bubbles].sort(([a], [b]) => (b === selection.topic) - (a === selection.topic));
    for (const [, { bubble, name, said, place, wide }] of first) {
      // Bubbles grow less than the distances between them: that is what pulls them apart.
      const [x, y, r] = [place.x * scale + this.zoom.x, place.y * scale + this.zoom.y, place.r * Math.sqrt(scale)];
      bubble.setAttribute('cx', x);
      bubble.setAttribute('cy', y);
      bubble.setAttribute('r', r);
      // A name that would be larger than its bubble stays away; the tooltip has it.
      numbers.push({ node: name, x, y, wide: wide[0], fits: r >= 8 });
      circles.push({ left: x - r, right: x + r, top: y - r, bottom: y + r });
      texts.push({ node: said, x, y: y + r + 8, wide: wide[1], fits: true });
    }
    const taken = [];
    showApart(numbers, taken, this.width, this.height);
    showApart(texts, scale < this.wordsZoom ? taken.concat(circles) : taken, this.width, this.height);
    byId('map-in').disabled = scale >= this.mostZoom;
    byId('map-out').disabled = byId('map-whole').disabled = scale <= 1;
    this.picture.classList.toggle('zoomed', scale > 1);
  },

  // The wheel zooms with Ctrl or ⌘ held, since the page is scrolled by it; what is zoomed can be dragged.
  listen(picture) {
    const at = (event) => {
      const box = picture.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    let from = null;
    picture.addEventListener('wheel', (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      this.zoomBy(event.deltaY < 0 ? 1.25 : 0.8, ...at(event));
    }, { passive: false });
    picture.addEventListener('dblclick', (event) => this.zoomBy(2, ...at(event)));
    picture.addEventListener('pointerdown', (event) => {
      this.dragged = false;
      from = this.zoom.scale > 1 ? { at: at(event), x: this.zoom.x, y: this.zoom.y } : null;
    });
    picture.addEventListener('pointermove', (event) => {
      if (from === null) return;
      const [x, y] = at(event).map((now, axis) => now - from.at[axis]);
      // A hand that trembles means a click.
      if (!this.dragged && Math.hypot(x, y) < 4) return;
      this.dragged = true;
      picture.setPointerCapture(event.pointerId);
      Object.assign(this.zoom, { x: from.x + x, y: from.y + y });
      this.place();
    });
    for (const end of ['pointerup', 'pointercancel']) picture.addEventListener(end, () => { from = null; });
  },

  mark(id) {
    for (const [other, { bubble, name }] of this.bubbles) {
      bubble.setAttribute('aria-pressed', String(other === id));
      bubble.setAttribute('tabindex', other === id ? 0 : -1);
      name.classList.toggle('chosen', other === id);
    }
    if (this.picture) this.place();
  },

  // Arrow keys walk through the topics in the order of their size; + and − zoom around one.
  move(event, id) {
    if (isActivation(event)) {
      event.preventDefault();
      selection.open(id);
    }
    const factor = { '+': 2, '=': 2, '-': 0.5, 0: 0 }[event.key];
    if (factor !== undefined && !event.ctrlKey && !event.metaKey) {
      const { bubble } = this.bubbles.get(id);
      this.zoomBy(factor, Number(bubble.getAttribute('cx')), Number(bubble.getAttribute('cy')));
    }
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = neighbour(id, step);
    selection.choose(next);
    this.show(next);
    this.bubbles.get(next).bubble.focus();
  },

  // Moves the picture so that a topic is within it.
  show(id) {
    const { scale } = this.zoom;
    const { place } = this.bubbles.get(id);
    const [x, y] = [place.x * scale + this.zoom.x, place.y * scale + this.zoom.y];
    if (x >= 0 && x <= this.width && y >= 0 && y <= this.height) return;
    Object.assign(this.zoom, { x: this.width / 2 - place.x * scale, y: this.height / 2 - place.y * scale });
    this.place();
  },

  // Fades the topics that do not use a word; null shows all again.
  highlight(word) {
    const users = word === null ? null : new Set(topicsOfWord(word).map(([id]) => id));
    for (const [id, { bubble }] of this.bubbles) bubble.classList.toggle('faded', users !== null && !users.has(id));
  },
};
