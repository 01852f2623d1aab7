// Example documents of a topic, the search, documents by temperature, and the hottest ones.

function documentCard(document, { hot, typed }) {
  const topics = document.topics.filter(([, part]) => part >= 0.05);
  const facts = `${format.plural(document.length, 'word')} · `;
  const heat = `T = ${document.temperature.toFixed(2)}`;
  return html('li', { class: 'document' },
    html('div', { class: 'row' },
      html('span', { class: 'name' }, document.name),
      html('span', { class: 'figure' }, facts, html('span', hot ? { class: 'hot' } : {}, heat))),
    html('p', { class: 'text' }, ...highlighted(document.text, topics, typed)),
    html('div', { class: 'chips' }, ...topics.map(([id, part], place) => topicChip(id, part, place))));
}

function drawExamples(topic) {
  const holder = byId('topic-documents');
  if (topic.documents === undefined) { holder.replaceChildren(); return; }
  const cards = topic.documents.map((place) => documentCard(report.documents[place], { hot: false }));
  holder.replaceChildren(
    html('h4', { class: 'subtitle' }, 'Documents that are most about it'),
    cards.length ? html('ul', {}, ...cards) : html('p', { class: 'hint small' }, 'No document is much about this topic.'),
  );
}

// A list that grows by ten; `cards` makes the cards of some documents.
function growingList(list, button, places, card) {
  let shown = 0;
  list.replaceChildren();
  button.onclick = () => {
    const next = places.slice(shown, shown + 10);
    list.append(...next.map((place) => card(report.documents[place])));
    shown += next.length;
    button.hidden = shown >= places.length;
    button.textContent = `Show ${Math.min(10, places.length - shown)} more`;
  };
  button.onclick();
}

// Documents that hold every word that is typed; "topic:7" are those that are about it.
function findDocuments(typed) {
  const about = typed.filter((word) => /^topic:\d+$/.test(word)).map((word) => Number(word.slice(6)));
  const wanted = typed.filter((word) => !/^topic:\d*$/.test(word));
  const part = (document, id) => (document.topics.find(([other]) => other === id) || [id, 0])[1];
  const found = report.documents.map((_, place) => place).filter((place) => {
    const document = report.documents[place];
    const text = `${document.name} ${document.text}`.toLowerCase();
    return wanted.every((word) => text.includes(word)) && about.every((id) => part(document, id) >= 0.1);
  });
  if (about.length) found.sort((a, b) => part(report.documents[b], about[0]) - part(report.documents[a], about[0]));
  return { found, wanted };
}

function searchDocuments() {
  const typed = byId('document-search').value.trim().toLowerCase().split(/\s+/).filter(Boolean);
  const { found, wanted } = findDocuments(typed);
  const { given } = report.facts;
  const here = report.documents.length < given ? `${format.whole(report.documents.length)} of ${format.plural(given, 'document')} can be searched here, by the beginning of their text` : `All ${format.plural(given, 'document')} can be searched, by the beginning of their text`;
  byId('document-count').textContent = typed.length ? `${format.plural(found.length, 'document')} found.` : `${here}. Words are in the colours of the topics below them; topic:${report.topics[0].id} finds what is about that topic.`;
  growingList(byId('document-results'), byId('document-more'), typed.length ? found : [], (document) => documentCard(document, { hot: false, typed: wanted }));
}

function drawDocuments() {
  const holder = byId('document-parts');
  const { temperatures, facts } = report;
  if (temperatures === null) {
    byId('documents-lead').textContent = '';
    byId('document-searcher').hidden = true;
    holder.append(html('p', { class: 'note' }, 'This report was made without the documents; with them, it shows examples of each topic and the documents by temperature.'));
    return;
  }
  const drawn = facts.read < facts.given ? ` ${format.whole(facts.read)} of ${format.whole(facts.given)} documents were looked at.` : '';
  byId('documents-lead').textContent = `T is the temperature at which local tempering would see each document: a hot one is badly explained by these topics, an outlier.${drawn}`;
  const { edges, counts, hottest } = temperatures;
  const list = html('ul', { class: 'hottest' });
  const button = html('button', { type: 'button', class: 'quiet more' });
  growingList(list, button, hottest, (document) => documentCard(document, { hot: true }));
  byId('document-search').addEventListener('input', searchDocuments);
  searchDocuments();
  holder.append(html('div', { class: 'stack' },
    histogram({
      title: 'Documents by temperature',
      edges,
      counts,
      label: 'temperature',
      say: (i) => `${format.plural(counts[i], 'document')} with T from ${edges[i].toFixed(2)} to ${edges[i + 1].toFixed(2)}`,
    }),
    html('div', { class: 'card' }, html('h3', {}, 'The hottest documents'), list, button)));
}
