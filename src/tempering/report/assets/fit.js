// What was fitted, and how the fit went.

function drawOverview() {
  const { facts, topics, curves } = report;
  const scores = curves.validation;
  const coherences = topics.map((topic) => topic.coherence).filter((value) => typeof value === 'number');
  const cards = [
    ['topics', format.whole(facts.topics)],
    [facts.held_out ? `documents, ${format.whole(facts.held_out)} of them held out` : 'documents',
      facts.documents === null ? null : format.whole(facts.documents + facts.held_out)],
    [facts.held_out ? 'words of those fitted' : 'words in them', facts.tokens > 0 ? format.compact(facts.tokens) : null],
    ['words of the vocabulary', format.whole(facts.vocabulary)],
    ['time of the fit', facts.seconds === undefined ? null : format.seconds(facts.seconds)],
    ['passes over the documents', facts.passes === undefined ? null : format.number(facts.passes, 3)],
    ['held-out score, nats a word', scores.length ? format.fixed(scores[scores.length - 1][1], 3) : null],
    ['mean coherence (NPMI)', coherences.length ? format.number(coherences.reduce((sum, value) => sum + value, 0) / coherences.length, 2) : null],
  ];
  byId('facts').append(...cards.filter(([, value]) => value !== null).map(
    ([name, value]) => html('div', {}, html('dt', {}, name), html('dd', {}, value)),
  ));
  byId('lead').textContent = 'Latent Dirichlet allocation: the topics it found, their words, and the documents that they explain well or badly.';
  byId('parameters').append(...report.parameters.map(
    ([name, value]) => html('div', {}, html('dt', {}, name), html('dd', {}, value)),
  ));
  byId('footer').textContent = `Made by tempering ${facts.version}. This file holds all its data and fetches nothing.`;
}

function drawCurves() {
  const { curves, facts } = report;
  const when = (seen) => {
    const passes = facts.passes && facts.documents ? ` · pass ${(seen / facts.documents).toFixed(2)}` : '';
    return `${format.whole(seen)} documents${passes}`;
  };
  const kinds = [
    ['temperature', 'Temperature', (value) => `T = ${value.toFixed(3)}`],
    ['validation', 'Held-out score', (value) => `${format.fixed(value, 4)} nats a word`],
    ['elbo', 'ELBO at T = 1', (value) => format.number(value, 7)],
  ];
  const charts = kinds.filter(([name]) => curves[name].length > 1).map(([name, title, value]) => lineChart({
    name,
    title,
    points: curves[name],
    shade: name === 'temperature' ? curves.final_start : null,
    label: 'documents seen',
    say: (point) => `${value(point[1])} · ${when(point[0])}`,
  }));
  const holder = byId('curves');
  holder.append(...charts);
  if (charts.length === 0) holder.append(html('p', { class: 'note' }, 'No history of this fit was kept.'));
}
