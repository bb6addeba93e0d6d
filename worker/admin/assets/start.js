/* A browser drops what it is about to fetch when a network of its machine comes or goes. Without one of its scripts the
   dashboard shows nothing: then the page says so, and is loaded again. Its address stays, with a link that signs in. */
const AGAIN_MS = 2000;

addEventListener('error', (event) => {
  if (event.target.tagName !== 'SCRIPT') return;
  const note = document.createElement('p');
  note.className = 'note';
  note.textContent = 'A part of this page did not come. The page is loaded again.';
  document.getElementById('main').replaceChildren(note);
  setTimeout(() => location.reload(), AGAIN_MS);
}, true);
