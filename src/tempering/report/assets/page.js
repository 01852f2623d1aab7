// Puts the page together.

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
}

// A browser may forbid a file to remember anything; the button works all the same.
const memory = {
  read() { try { return localStorage.getItem('tempering-theme'); } catch { return null; } },
  write(theme) { try { localStorage.setItem('tempering-theme', theme); } catch { /* not remembered */ } },
};

const remembered = memory.read();
if (remembered) document.documentElement.dataset.theme = remembered;
byId('theme').addEventListener('click', () => {
  const theme = isDark() ? 'light' : 'dark';
  document.documentElement.dataset.theme = theme;
  memory.write(theme);
});

drawOverview();
drawCurves();
topicMap.draw();
topicList.draw();
openTopic.draw();
drawSearch();
byId('search').addEventListener('input', drawSearch);
drawDocuments();
topicTree.draw();
drawShares();
selection.choose(selection.topic);
selection.follow();
document.documentElement.dataset.ready = 'true';
