'use strict';
const list = document.getElementById('list');
const parts = [...list.querySelectorAll('.part')];
const make = (tag, text, name) => {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (name) made.className = name;
  return made;
};
const show = effect => {
  const fold = make('details', undefined, effect.quiet ? 'effect quiet' : 'effect');
  fold.id = effect.id;
  const head = make('summary');
  head.append(make('code', effect.line), ` ${effect.time} `, make('b', effect.kind), ` ${effect.who} `, make('span', effect.brief, effect.class));
  fold.append(head);
  const part = (title, text) => {
    const shown = make('pre', text);
    shown.tabIndex = 0;
    fold.append(make('h3', title), shown);
  };
  part(list.dataset.request, effect.request);
  if (effect.outcome) part(list.dataset.outcome + (effect.took && ` (${effect.took})`), effect.outcome);
  else fold.append(make('p', list.dataset.open));
  return fold;
};
const fill = part => {
  const data = part.nextElementSibling;
  if (data?.type !== 'application/json') return;
  // What a live page has added already is newer.
  part.append(...JSON.parse(data.textContent).filter(effect => !document.getElementById(effect.id)).map(show));
  data.remove();
};
const reach = () => {
  const line = Number(location.hash.replace(/^#e(ffect)?/, ''));
  const part = parts.find(part => part.dataset.last >= line);
  if (!line || !part || document.getElementById(location.hash.slice(1))) return;
  fill(part);
  // So that it is the target, and not only seen.
  location.replace(location.hash);
};
// A page is seen and can be used first; then all of it is there to be searched.
const later = globalThis.requestIdleCallback ?? setTimeout;
const go = (index = 0) => {
  if (index >= parts.length) return;
  fill(parts[index]);
  later(() => go(index + 1));
};
addEventListener('hashchange', reach);
addEventListener('beforeprint', () => parts.forEach(fill));
addEventListener('load', () => {
  reach();
  later(() => go());
});
