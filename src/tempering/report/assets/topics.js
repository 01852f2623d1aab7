// The list of topics, the open topic with its words, and the search for words.

const { words } = report;
const steps = report.facts.relevance_steps;

// The words of a topic in the order of λ log p(w|k) + (1 − λ) log p(w|k) / p(w).
function rankedWords(topic, relevance, count) {
  return topic.words
    .map((word, i) => {
      const probability = topic.probabilities[i];
      const score = Math.log(probability) - (1 - relevance) * Math.log(words.probability[word]);
      return { word, probability, score };
    })
    .sort((a, b) => b.score - a.score)
    .slice(0, count);
}

const usualRelevance = 0.6;
const topWords = (topic, count) => rankedWords(topic, usualRelevance, count).map(({ word }) => words.text[word]);

// Pairs of topic and part of the word's uses, largest first.
function topicsOfWord(word) {
  const flat = words.topics[word];
  return Array.from({ length: flat.length / 2 }, (_, i) => [flat[2 * i], flat[2 * i + 1] / 1000]);
}

function neighbour(id, step) {
  const order = report.topics.map((topic) => topic.id);
  return order[(order.indexOf(id) + step + order.length) % order.length];
}

// What a person named it, or else its words.
const topicName = (topic, count = 3) => topic.label || topWords(topic, count).join(', ');

// `place` gives it the colour of that topic in a document.
function topicChip(id, part, place) {
  const chip = html('button', { type: 'button', class: 'chip', onclick: () => selection.open(id) },
    place === undefined ? null : html('i', { class: `swatch topic-${place}` }),
    html('b', {}, String(id)), ` ${alone(topicName(topicById.get(id), 2))} · ${format.percent(part)}`);
  chip.style.setProperty('--part', `${100 * part}%`);
  return chip;
}

const topicList = {
  rows: new Map(),

  draw() {
    const most = report.topics[0].prevalence;
    for (const topic of report.topics) {
      const bar = html('i');
      bar.style.width = `${(100 * topic.prevalence) / most}%`;
      this.rows.set(topic.id, html('button', {
        type: 'button', class: 'topic-row', 'data-topic': topic.id,
        onclick: () => selection.choose(topic.id),
        onkeydown: (event) => this.move(event),
      },
      html('span', { class: 'number' }, String(topic.id)),
      html('span', { class: 'terms' }, topic.label ? html('b', {}, `${topic.label}: `) : null, topWords(topic, 7).join(', ')),
      html('span', { class: 'figure' }, format.percent(topic.prevalence)),
      html('span', { class: 'meter' }, bar)));
    }
    const order = byId('topic-order');
    for (const measure of ['coherence', 'stability']) {
      if (typeof report.topics[0][measure] !== 'number') order.querySelector(`[value=${measure}]`).remove();
    }
    order.addEventListener('change', () => this.arrange(order.value));
    this.arrange(order.value);
    selection.listen((id) => this.mark(id));
    // On a phone the open topic stands below the list.
    byId('topic-list').addEventListener('click', () => {
      if (byId('detail').getBoundingClientRect().top > innerHeight * 0.6) selection.open(selection.topic);
    });
  },

  arrange(key) {
    const sign = key === 'id' ? 1 : -1;
    const sorted = [...report.topics].sort((a, b) => sign * (a[key] - b[key]));
    byId('topic-list').replaceChildren(...sorted.map((topic) => html('li', {}, this.rows.get(topic.id))));
  },

  mark(id) {
    for (const [other, row] of this.rows) row.setAttribute('aria-current', String(other === id));
    const row = this.rows.get(id);
    const list = byId('topic-list');
    const hidden = row.offsetTop;
    if (hidden < list.scrollTop || hidden + row.offsetHeight > list.scrollTop + list.clientHeight) {
      list.scrollTop = hidden - list.clientHeight / 3;
    }
  },

  move(event) {
    const step = { ArrowUp: 'previousElementSibling', ArrowDown: 'nextElementSibling' }[event.key];
    const next = step && event.currentTarget.parentElement[step];
    if (!next) return;
    event.preventDefault();
    next.firstElementChild.focus();
  },
};

const openTopic = {
  bars: new Map(),
  width: 0,

  draw() {
    const slider = byId('relevance');
    slider.step = 1 / steps;
    slider.value = usualRelevance;
    slider.addEventListener('input', () => this.drawWords());
    byId('previous').addEventListener('click', () => selection.choose(neighbour(selection.topic, -1)));
    byId('next').addEventListener('click', () => selection.choose(neighbour(selection.topic, 1)));
    drawToWidth(byId('topic-words'), (width) => { this.width = width; this.startWords(); });
    selection.listen((id) => this.show(id));
  },

  show(id) {
    const topic = topicById.get(id);
    byId('detail-title').textContent = `Topic ${id}: ${topicName(topic)}`;
    byId('detail-link').setAttribute('href', `#topic-${id}`);
    byId('detail-link').setAttribute('aria-label', `Link to topic ${id}`);
    const measures = [[format.percent(topic.prevalence), 'of all words']];
    if (topic.spread !== undefined) measures.push([format.percent(topic.spread), 'of the documents are about it']);
    if (typeof topic.coherence === 'number') measures.push([format.fixed(topic.coherence, 2), 'coherence']);
    if (topic.stability !== undefined) measures.push([format.percent(topic.stability), 'comes again in other fits']);
    byId('detail-measures').replaceChildren(...measures.flatMap(([value, name], i) => [i ? ' · ' : '', html('b', {}, value), ` ${name}`]));
    this.startWords();
    drawOpenShares(topic);
    drawExamples(topic);
  },

  startWords() {
    this.bars.clear();
    byId('topic-words').replaceChildren();
    this.drawWords();
  },

  drawWords() {
    const holder = byId('topic-words');
    const { width } = this;
    if (width === 0) return;
    const relevance = Number(byId('relevance').value);
    byId('relevance-value').textContent = relevance.toFixed(2);
    const topic = topicById.get(selection.topic);
    const ranked = rankedWords(topic, relevance, report.facts.top_words);
    const tokens = report.facts.tokens || 1;
    const rowHeight = 21;
    const left = Math.min(132, width * 0.34);
    const right = 46;
    const uses = ({ word, probability }) => ({ own: tokens * topic.prevalence * probability, all: tokens * words.probability[word] });
    // One word that is common everywhere would leave no room for the others.
    const mostOwn = Math.max(...ranked.map((entry) => uses(entry).own));
    const most = Math.min(2 * mostOwn, Math.max(...ranked.map((entry) => uses(entry).all)));
    const scale = linear(0, most, 0, width - left - right);
    byId('cut-hint').hidden = ranked.every((entry) => uses(entry).all <= most);
    let picture = holder.firstElementChild;
    if (!picture) {
      picture = svg('svg', { role: 'list', 'aria-label': 'Words of the topic' });
      holder.append(picture);
    }
    picture.setAttribute('viewBox', `0 0 ${width} ${ranked.length * rowHeight}`);
    picture.setAttribute('height', ranked.length * rowHeight);
    const kept = new Set(ranked.map(({ word }) => word));
    for (const [word, bar] of this.bars) {
      if (!kept.has(word)) { bar.row.remove(); this.bars.delete(word); }
    }
    ranked.forEach((entry, place) => {
      let bar = this.bars.get(entry.word);
      if (!bar) {
        bar = this.newBar(topic, entry, uses(entry), { width, left, right, rowHeight });
        this.bars.set(entry.word, bar);
      }
      const { own, all } = uses(entry);
      bar.own.setAttribute('width', Math.max(scale(own), 1));
      bar.all.setAttribute('width', Math.max(scale(Math.min(all, most)), 1));
      bar.cut.setAttribute('visibility', all > most ? 'visible' : 'hidden');
      // In the order of the ranking for those who read with the keyboard, too.
      if (picture.children[place] !== bar.row) picture.insertBefore(bar.row, picture.children[place] || null);
      bar.row.style.transform = `translateY(${place * rowHeight}px)`;
    });
  },

  newBar(topic, { word, probability }, { own, all }, { width, left, right, rowHeight }) {
    const text = words.text[word];
    const room = Math.floor(left / 7.2);
    const middle = rowHeight / 2;
    const bars = {
      all: svg('rect', { class: 'all', x: left, y: 3, height: rowHeight - 6, rx: 2 }),
      own: svg('rect', { class: 'own', x: left, y: 3, height: rowHeight - 6, rx: 2 }),
      cut: svg('text', { class: 'cut', x: width - right - 4, y: middle, 'text-anchor': 'end', 'aria-hidden': 'true' }, '»'),
      part: svg('text', { class: 'part', x: width, y: middle, 'text-anchor': 'end' }, format.percent(probability)),
    };
    const part = own / all;
    const lift = probability / words.probability[word];
    const row = svg('g', {
      class: 'word', role: 'listitem', tabindex: 0, 'data-word': text,
      'aria-label': `${text}, ${format.percent(probability)} of the topic`,
      onclick: () => searchWord(text),
      onkeydown: (event) => { if (isActivation(event)) { event.preventDefault(); searchWord(text); } },
      onpointerenter: () => topicMap.highlight(word),
      onpointerleave: () => topicMap.highlight(null),
      onfocus: () => topicMap.highlight(word),
      onblur: () => topicMap.highlight(null),
    },
    svg('rect', { class: 'hit', width, height: rowHeight, rx: 4 }),
    svg('text', { class: 'term', x: left - 8, y: middle, 'text-anchor': 'end' }, text.length > room ? `${text.slice(0, room - 1)}…` : text),
    bars.all, bars.own, bars.cut, bars.part);
    tooltip.on(row, () => `${text}\n${format.percent(probability)} of the topic's words, ${format.number(lift, 2)} × as often as in the whole corpus\n`
      + `${format.percent(Math.min(part, 1))} of its ${format.whole(all)} uses are in this topic`);
    return { row, ...bars };
  },
};

// Words that start with what is typed come first, the frequent ones before the rare.
function findWords(typed, limit) {
  const wanted = typed.trim().toLowerCase();
  if (wanted === '') return { found: [], total: 0 };
  const matches = [];
  words.text.forEach((text, word) => {
    const place = text.toLowerCase().indexOf(wanted);
    if (place >= 0) matches.push({ word, rank: text.toLowerCase() === wanted ? 0 : place === 0 ? 1 : 2 });
  });
  matches.sort((a, b) => a.rank - b.rank || words.probability[b.word] - words.probability[a.word]);
  return { found: matches.slice(0, limit).map(({ word }) => word), total: matches.length };
}

function drawSearch() {
  const { found, total } = findWords(byId('search').value, 12);
  const typed = byId('search').value.trim();
  byId('search-count').textContent = typed === ''
    ? `${format.whole(words.text.length)} of ${format.whole(report.facts.vocabulary)} words can be searched: the frequent ones, and all that topics show.`
    : total === 0 ? `No word here holds “${typed}”.` : `${format.plural(total, 'word')} found${total > found.length ? `, the first ${found.length} shown` : ''}.`;
  byId('search-results').replaceChildren(...found.map((word) => html('li', {},
    html('span', {}, html('span', { class: 'found' }, words.text[word]), ' ',
      html('span', { class: 'hint small' }, `${format.compact(report.facts.tokens * words.probability[word])} uses`)),
    html('span', { class: 'chips' }, ...topicsOfWord(word).map(([id, part]) => topicChip(id, part))))));
}

function searchWord(text) {
  byId('search').value = text;
  drawSearch();
  byId('words').scrollIntoView({ behavior: reducedMotion.matches ? 'auto' : 'smooth' });
  byId('search').focus({ preventScroll: true });
}
