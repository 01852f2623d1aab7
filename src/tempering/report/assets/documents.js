// Example documents of a topic, documents by temperature, and the hottest ones.

function documentCard(document, { hot }) {
  const facts = `${format.plural(document.length, 'word')} · `;
  const heat = `T = ${document.temperature.toFixed(2)}`;
  return html('li', { class: 'document' },
    html('div', { class: 'row' },
      html('span', { class: 'name' }, document.name),
      html('span', { class: 'figure' }, facts, html('span', hot ? { class: 'hot' } : {}, heat))),
    html('p', { class: 'text' }, document.text),
    html('div', { class: 'chips' }, ...document.topics.filter(([, part]) => part >= 0.05).map(([id, part]) => topicChip(id, part))));
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

function drawDocuments() {
  const holder = byId('document-parts');
  const { temperatures, facts } = report;
  if (temperatures === null) {
    byId('documents-lead').textContent = '';
    holder.append(html('p', { class: 'note' }, 'This report was made without the documents; with them, it shows examples of each topic and the documents by temperature.'));
    return;
  }
  const drawn = facts.read < facts.given ? ` ${format.whole(facts.read)} of ${format.whole(facts.given)} documents were looked at.` : '';
  byId('documents-lead').textContent = `The temperature at which local tempering would see each document: a hot one is badly explained by these topics, an outlier.${drawn}`;
  const { edges, counts, hottest } = temperatures;
  const list = html('ul', { class: 'hottest' });
  const button = html('button', { type: 'button', class: 'quiet more' });
  let shown = 0;
  function showMore() {
    const next = hottest.slice(shown, shown + 10);
    list.append(...next.map((place) => documentCard(report.documents[place], { hot: true })));
    shown += next.length;
    button.hidden = shown >= hottest.length;
    button.textContent = `Show ${Math.min(10, hottest.length - shown)} more`;
  }
  button.addEventListener('click', showMore);
  showMore();
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
