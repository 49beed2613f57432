'use strict';
const source = new EventSource(document.body.dataset.events);
const put = ({ id, into, html }) => {
  const made = document.createElement('template');
  made.innerHTML = html;
  const old = document.getElementById(id);
  if (!old) return document.getElementById(into).append(made.content);
  if (old.open) made.content.firstElementChild.open = true;
  old.replaceWith(made.content);
};
source.addEventListener('rows', event => JSON.parse(event.data).forEach(put));
source.addEventListener('questions', event => {
  document.getElementById('questions').innerHTML = JSON.parse(event.data);
});
source.addEventListener('status', event => {
  const { text, name } = JSON.parse(event.data);
  const status = document.getElementById('status');
  status.textContent = text;
  status.className = `status ${name}`;
});
