import { element, partsOf, summaryOf } from './bubble.js'
import { tell, tellAway, tellThere, write } from './customer.js'

const byId = (id) => document.getElementById(id)
const [numbers, chats, thread, title] = ['number', 'chats', 'thread', 'title'].map(byId)

/** Chats by number and person; the newest last. Each has its entries by message id. */
const known = new Map()
let current

const keyOf = ({ number, person }) => `${number} ${person}`

function chatOf(event) {
  const key = keyOf(event)
  const chat = known.get(key) ?? { key, number: event.number, person: event.person, entries: new Map() }
  known.set(key, chat)
  return chat
}

function take(event) {
  if (event.type === 'status') return takeStatus(event)
  const chat = chatOf(event)
  const message = event.type === 'send' ? JSON.parse(event.body) : event.message
  chat.entries.set(event.id, { ...event, message, status: chat.entries.get(event.id)?.status ?? '' })
  // The chat that moved last stands first.
  known.delete(chat.key)
  known.set(chat.key, chat)
  if (!numberIsListed(event.number)) void listNumbers().catch(tellAway)
  if (!current && event.number === numbers.value) current = chat
  draw()
}

function takeStatus(event) {
  const entry = known.get(keyOf(event))?.entries.get(event.id)
  if (!entry) return
  entry.status = event.status
  draw()
}

const numberIsListed = (number) => [...numbers.options].some(({ value }) => value === number)

/** One question at a time: each of a thousand events may be the first of its number. */
let listing
const listNumbers = () => (listing ??= askForNumbers().finally(() => (listing = undefined)))

async function askForNumbers() {
  const { data } = await (await fetch('/control/numbers')).json()
  const chosen = numbers.value
  numbers.replaceChildren(
    ...data.map(
      (number) => new Option(`${number.display_phone_number} · ${number.phone_number_id}`, number.phone_number_id),
    ),
  )
  if (numberIsListed(chosen)) numbers.value = chosen
  if (current?.number !== numbers.value) current = newestChat()
  draw()
}

const newestChat = () => [...known.values()].findLast((chat) => chat.number === numbers.value)

/** The current chat's person writes. */
const writeNow = (message) => current && write(current, message, byId('name').value.trim())

/** Once in a frame, however much has come. */
let drawing = false
function draw() {
  if (drawing) return
  drawing = true
  requestAnimationFrame(() => {
    drawing = false
    drawChats()
    drawThread()
  })
}

/** Puts these items into a list; the keyboard stays at what it was at. */
function show(list, items) {
  const at = document.activeElement
  const id = at.closest('[data-id]')?.dataset.id
  // What stays is not touched: a screen reader would read all of it again.
  for (const gone of [...list.children].filter((item) => !items.includes(item))) gone.remove()
  for (const [place, item] of items.entries())
    if (list.children[place] !== item) list.insertBefore(item, list.children[place] ?? null)
  if (list.contains(document.activeElement)) return
  const item = id && items.find(({ dataset }) => dataset.id === id)
  if (!item) return
  const places = [item, ...item.querySelectorAll('a, button')].filter(({ tabIndex }) => tabIndex >= 0)
  const place = places.find(({ textContent }) => textContent === at.textContent) ?? places[0]
  place?.focus({ preventScroll: true })
}

function drawChats() {
  const shown = [...known.values()].filter((chat) => chat.number === numbers.value).reverse()
  show(
    chats,
    shown.map((chat) => {
      const last = [...chat.entries.values()].at(-1)
      const button = element(
        'button',
        { type: 'button', onclick: () => open(chat) },
        element('strong', { textContent: `+${chat.person}` }),
        element('span', { textContent: last ? summaryOf(last.message) : 'nothing yet' }),
      )
      button.dataset.id = chat.key
      button.setAttribute('aria-current', String(chat === current))
      return button
    }),
  )
}

function open(chat) {
  current = chat
  draw()
  byId('text').focus()
}

function drawThread() {
  title.textContent = current ? `+${current.person}` : 'No chat yet'
  const entries = current ? [...current.entries.values()].slice(-200) : []
  const shown = new Map([...thread.children].map((item) => [item.dataset.key, item]))
  const items = entries.map((entry) => {
    const key = `${entry.id} ${entry.status}`
    return shown.get(key) ?? bubble(entry, key)
  })
  const atEnd = thread.scrollHeight - thread.scrollTop - thread.clientHeight < 80
  const grew = items.some((item) => item.parentNode !== thread)
  if (!grew && items.length === thread.children.length) return
  show(thread, items)
  if (atEnd || grew) thread.scrollTop = thread.scrollHeight
}

function bubble(entry, key) {
  const quoted = (id) => {
    const other = current.entries.get(id)
    return other ? summaryOf(other.message) : id.slice(-12)
  }
  const tap = (message) => writeNow({ ...message, context: { id: entry.id } })
  const item = element(
    'li',
    { className: entry.type },
    ...partsOf(entry.message, entry.template, tap, quoted).filter(Boolean),
    metaOf(entry),
  )
  item.dataset.key = key
  item.dataset.id = entry.id
  return item
}

function metaOf(entry) {
  const time = element('small', { textContent: new Date(entry.at).toLocaleTimeString() })
  if (entry.type === 'inbound') {
    const seen = entry.status ? element('small', { className: 'status-read', textContent: entry.status }) : undefined
    return element('div', { className: 'meta' }, time, seen)
  }
  const status = element('small', { className: `status-${entry.status}`, textContent: entry.status || 'accepted' })
  const action = (textContent, onclick) => element('button', { type: 'button', textContent, onclick })
  const isRead = entry.status === 'read' || entry.status === 'played'
  const isAudio = entry.message.type === 'audio'
  return element(
    'div',
    { className: 'meta' },
    time,
    status,
    isRead ? undefined : action('mark read', () => tell(entry, 'read')),
    isAudio && entry.status !== 'played' ? action('mark played', () => tell(entry, 'played')) : undefined,
    action('👍', () => writeNow({ type: 'reaction', reaction: { message_id: entry.id, emoji: '👍' } })),
  )
}

numbers.addEventListener('change', () => {
  current = newestChat()
  draw()
})

byId('start').addEventListener('submit', (event) => {
  event.preventDefault()
  open(chatOf({ number: numbers.value, person: byId('person').value }))
  event.target.reset()
})

byId('write').addEventListener('submit', (event) => {
  event.preventDefault()
  if (!current) return byId('person').focus()
  void writeText(byId('text'))
})

/** What was not taken is there again, before what has been written since. */
async function writeText(field) {
  const { value } = field
  field.value = ''
  if (!(await writeNow({ type: 'text', text: { body: value } }))) field.value = value + field.value
}

await listNumbers().catch(tellAway)
const events = new EventSource('/watch/events')
events.addEventListener('message', ({ data }) => take(JSON.parse(data)))
events.addEventListener('error', tellAway)
events.addEventListener('open', () => void listNumbers().then(tellThere, tellAway))
