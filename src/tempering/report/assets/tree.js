// Which topics are alike: joined two by two, the nearest first; cut into as many groups as wanted.

const topicTree = {
  n: report.topics.length,

  draw() {
    if (report.tree === null) {
      byId('tree').hidden = true;
      byId('tree-link').hidden = true;
      return;
    }
    const slider = byId('tree-groups');
    slider.max = this.n;
    slider.value = Math.min(this.n, Math.max(2, Math.round(Math.sqrt(2 * this.n))));
    slider.addEventListener('input', () => this.cut(Number(slider.value)));
    drawToWidth(byId('tree-picture'), (width) => this.drawAt(width));
    selection.listen((id) => this.mark(id));
    this.cut(Number(slider.value));
  },

  // The topics below each join, from the leaves to the root, in the order of the picture.
  below() {
    const members = Array.from({ length: this.n }, (_, id) => [id]);
    for (const [a, b] of report.tree) members.push([...members[a], ...members[b]]);
    return members;
  },

  cut(count) {
    byId('tree-groups-value').textContent = String(count);
    const members = this.below();
    // The last joins are undone first.
    const nodes = new Set(report.topics.map(({ id }) => id));
    report.tree.slice(0, this.n - count).forEach(([a, b], i) => { nodes.delete(a); nodes.delete(b); nodes.add(this.n + i); });
    const groups = [...nodes].map((node) => members[node]);
    const size = (group) => group.reduce((sum, id) => sum + topicById.get(id).prevalence, 0);
    groups.sort((a, b) => size(b) - size(a));
    this.groupOf = new Map(groups.flatMap((group, place) => group.map((id) => [id, place])));
    byId('tree-list').replaceChildren(...groups.map((group) => {
      const inside = [...group].sort((a, b) => topicById.get(b).prevalence - topicById.get(a).prevalence);
      return html('li', {},
        html('p', { class: 'row' }, html('b', {}, this.wordsOf(group).join(', ')),
          html('span', { class: 'figure hint small' }, `${format.plural(group.length, 'topic')} · ${format.percent(size(group))}`)),
        html('div', { class: 'chips' }, ...inside.map((id) => topicChip(id, topicById.get(id).prevalence))));
    }));
    this.colour();
  },

  // Words that the topics of a group share most of, each topic weighed by its size.
  wordsOf(group) {
    const uses = new Map();
    for (const id of group) {
      const topic = topicById.get(id);
      topic.words.forEach((word, i) => uses.set(word, (uses.get(word) || 0) + topic.prevalence * topic.probabilities[i]));
    }
    const relevance = ([word, use]) => Math.log(use) - (1 - usualRelevance) * Math.log(words.probability[word]);
    return [...uses].sort((a, b) => relevance(b) - relevance(a)).slice(0, 5).map(([word]) => words.text[word]);
  },

  drawAt(width) {
    const rowHeight = 19;
    const members = this.below();
    const order = members[members.length - 1];
    const height = order.length * rowHeight + 6;
    const names = Math.min(260, width * 0.55);
    // Topics of real text are all far from each other: what lies below the nearest two is cut off.
    const [near, far] = [0.95 * report.tree[0][2], report.tree[report.tree.length - 1][2]];
    const x = linear(near, far, width - names, 8);
    const places = Array.from({ length: this.n }, () => null);
    order.forEach((id, row) => { places[id] = { x: width - names, y: 3 + rowHeight * (row + 0.5) }; });
    const picture = svg('svg', { viewBox: `0 0 ${width} ${height}`, height, role: 'list', 'aria-label': 'Topics, alike ones beside each other' });
    this.branches = report.tree.map(([a, b, distance], i) => {
      const [one, two] = [places[a], places[b]];
      const at = x(distance);
      places.push({ x: at, y: (one.y + two.y) / 2 });
      const line = svg('path', { class: 'branch', d: `M${one.x},${one.y}H${at}V${two.y}H${two.x}` });
      picture.append(line);
      return { line, below: members[this.n + i] };
    });
    const room = Math.floor((names - 12) / 6.8);
    this.leaves = new Map(order.map((id) => {
      const topic = topicById.get(id);
      const name = `${id} ${topicName(topic, 4)}`;
      const leaf = svg('text', {
        class: 'leaf', x: width - names + 8, y: places[id].y + 4, role: 'listitem', tabindex: 0, 'data-topic': id,
        'aria-label': `Topic ${id}: ${topicName(topic, 4)}`,
        onclick: () => selection.open(id),
        onkeydown: (event) => { if (isActivation(event)) { event.preventDefault(); selection.open(id); } },
      }, name.length > room ? `${name.slice(0, room - 1)}…` : name);
      picture.append(leaf);
      return [id, leaf];
    }));
    byId('tree-picture').replaceChildren(picture);
    this.colour();
    this.mark(selection.topic);
  },

  // Branches within a group are drawn strongly, those that join groups faintly.
  colour() {
    for (const { line, below } of this.branches || []) {
      line.classList.toggle('inside', below.every((id) => this.groupOf.get(id) === this.groupOf.get(below[0])));
    }
  },

  mark(id) {
    for (const [other, leaf] of this.leaves || []) leaf.classList.toggle('chosen', other === id);
  },
};
