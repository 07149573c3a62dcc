// The whole page: it opens the platform's dialog, and hands what that tells to the server.
const page = document.getElementById('page')
const button = document.getElementById('connect')
const status = document.getElementById('status')
const { organization } = page.dataset
const origins = page.dataset.origins.split(' ')

/** The code lives for 30 s; what it bought is kept, so that asking again goes on. */
const completeWithinMs = 60_000
const beginWithinMs = 15_000
const sdkWithinMs = 30_000
const askAgainMs = 1_500
/** The dialog tells ids and code apart, in either order. */
const idsWithinMs = 5_000

/** Fetched before it is needed: a window opens only right after a click. */
let state = null
let isBusy = false
let told = null

/** What was handed to the server, for when the page is loaded anew before it has answered. */
const walk = {
  get: () => inStorage((storage) => JSON.parse(storage.getItem(page.dataset.link))),
  keep: (body) => inStorage((storage) => storage.setItem(page.dataset.link, JSON.stringify(body))),
  forget: () => inStorage((storage) => storage.removeItem(page.dataset.link)),
}

/** A browser that keeps nothing for us throws at the first touch. */
function inStorage(work) {
  try {
    return work(sessionStorage)
  } catch {
    return null
  }
}

const connecting = 'One moment: your number is being connected …'

const say = (text) => {
  status.textContent = text
  // On a phone it is below what is seen. While the page loads nothing moves.
  if (isBusy) status.scrollIntoView({ block: 'nearest' })
}
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

async function post(path, body, withinMs) {
  const options = { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  try {
    // On a line that is dead, and not closed, no answer ever comes. Older browsers have no such signal.
    const response = await fetch(path + location.search, { ...options, signal: AbortSignal.timeout?.(withinMs) })
    return { status: response.status, body: await response.json() }
  } catch {
    return { status: 0, body: {} }
  }
}

/** Unknown, busy, away, or asked too often from this network: the same question again goes on where the first one came to. */
const isPassing = ({ status: code, body }) =>
  code === 0 || code === 429 || code >= 500 || body.error?.code === 'setup_in_progress'

/** Asks until there is an answer that stays. */
async function ask(path, body, withinMs) {
  const until = performance.now() + withinMs
  for (;;) {
    const answer = await post(path, body, withinMs)
    if (!isPassing(answer) || performance.now() >= until) return answer
    await wait(askAgainMs)
  }
}

/** The SDK loads itself in two parts, and calls when it is there; one that a content blocker has emptied never calls. */
function loadSdk(url) {
  return new Promise((resolve, reject) => {
    window.fbAsyncInit = resolve
    const script = document.createElement('script')
    Object.assign(script, { src: url, async: true, onerror: reject })
    document.head.append(script)
    setTimeout(reject, sdkWithinMs)
  })
}

const notNow = 'Not available at the moment'

/** Refused because of the link itself: the server knows what to say of it. */
const isAboutLink = ({ status: code, body }) =>
  code === 404 || ['setup_link_inactive', 'customer_suspended'].includes(body.error?.code) || code === 403

async function prepare() {
  const answer = await ask('setup/begin', { setup_link_id: page.dataset.link }, beginWithinMs)
  if (isAboutLink(answer)) return location.reload()
  if (answer.status !== 200) throw new Error(notNow)
  state = answer.body.data.state
}

async function ready() {
  try {
    await Promise.all([loadSdk(page.dataset.script), prepare()])
    window.FB.init({ appId: page.dataset.app, version: page.dataset.version, xfbml: false, cookie: false })
    button.disabled = false
    say('')
  } catch (err) {
    if (err?.message === notNow)
      return show('failed', notNow, 'Your link is fine. Please check your connection, and try again in a minute.')
    show('failed', 'The platform’s window is not available', 'Please check your connection and any content blocker.')
  }
}

addEventListener('message', (event) => {
  if (!origins.includes(event.origin) || typeof event.data !== 'string') return
  try {
    const message = JSON.parse(event.data)
    if (message.type !== 'WA_EMBEDDED_SIGNUP') return
    told = message
    // Of a window from before the page was loaded anew: the code went to that one.
    if (!isBusy && message.data?.waba_id) say('This page was loaded anew meanwhile: please connect the number again.')
  } catch {
    // Other messages of the platform's are no JSON.
  }
})

function openDialog() {
  if (isBusy) return
  isBusy = true
  told = null
  button.setAttribute('aria-disabled', 'true')
  say('Please go on in the window that has opened. If there is none, allow pop-ups and load this page again.')
  window.FB.login((response) => void endDialog(response), {
    config_id: page.dataset.config,
    response_type: 'code',
    override_default_response_type: true,
    state,
    extras: JSON.parse(page.dataset.extras),
  })
}

/** The dialog is over. */
async function endDialog({ authResponse }) {
  const code = authResponse?.code
  const problem = told?.data?.error_message
  if (!code) return problem || told?.event === 'ERROR' ? refused(problem) : cancelled()
  say(connecting)
  // What it told so far may be a fault that the visitor reported, and then overcame.
  for (let waitedMs = 0; !told?.data?.waba_id && waitedMs < idsWithinMs; waitedMs += 100) await wait(100)
  if (!told?.data?.waba_id) return refused()
  await complete(resultOf(code))
}

const events = { FINISH_ONLY_WABA: 'account_only', FINISH_WHATSAPP_BUSINESS_APP_ONBOARDING: 'business_app' }

function resultOf(code) {
  const { waba_id: account, phone_number_id: number } = told.data
  return {
    state,
    code,
    event: events[told.event] ?? 'number',
    business_account_id: String(account),
    phone_number_id: number ? String(number) : null,
  }
}

async function complete(body) {
  walk.keep(body)
  const answer = await ask('setup/complete', body, completeWithinMs)
  if (!isPassing(answer)) walk.forget()
  if (answer.status === 200) return succeeded(answer.body.data)
  if (answer.status === 404) return passedOver()
  if (isPassing(answer))
    return show('failed', 'This takes longer than usual', 'Nothing is lost. Please try again in a minute.')
  return isAboutLink(answer) ? location.reload() : refused(reasonOf(answer.body.error))
}

/** For people: the platform's own words, if it had any. What is wrong with a question of ours tells them nothing. */
function reasonOf({ code, message = '' } = {}) {
  if (code === 'phone_number_taken') return 'It is already connected to another organization or another customer.'
  if (code !== 'upstream_error') return 'Something went wrong on our side.'
  return message.replace(
    /^The upstream platform refused the request(: code \d+$)?/,
    'The messaging platform refused it',
  )
}

function succeeded({ number, success_url: url }) {
  if (url) return location.assign(url)
  // The name may be written from right to left: its signs stay with it.
  const shown = [number.phone_number, number.name && `\u2068${number.name}\u2069`].filter(Boolean).join(', ')
  document.getElementById('done-number').textContent = shown
  if (!number.phone_number_id) {
    const text = `Your business account is connected to ${organization}, without a number yet. Add one on the platform, or open this link again.`
    return show('done', 'Almost done', text)
  }
  if (number.registered) return show('done', 'Your number is connected', `${organization} can use it from now on.`)
  const text = `It is connected to ${organization}, which still has to register it before messages can be sent. You need do nothing here.`
  show('done', 'Almost done: the number is pending', text)
}

/** The cookie is gone, or has other links: to load the page again would show as much. */
function passedOver() {
  document.getElementById('again').hidden = true
  const text = 'Nothing was connected: other links were opened in this browser meanwhile, or its cookies were cleared.'
  show('failed', 'Please open your link again', text)
}

function cancelled() {
  if (page.dataset.cancelled) return location.assign(page.dataset.cancelled)
  show(
    'failed',
    'Nothing was connected',
    'The window was closed before you were done. If none opened, allow pop-ups. You can try again at any time.',
  )
}

function refused(reason) {
  if (page.dataset.failed) return location.assign(page.dataset.failed)
  const why = (reason || 'The messaging platform did not name a number').replace(/[^.!?]$/, '$&.')
  const text = `${why} You can try again. If that does not help, please ask ${organization}.`
  show('failed', 'The number could not be connected', text)
}

/** Shows one section, and takes keyboard and screen reader there. */
function show(id, title, text) {
  for (const section of page.children) section.hidden = section.id !== id
  document.getElementById(`${id}-text`).textContent = text
  const heading = document.getElementById(`${id}-title`)
  heading.textContent = title
  // What it says of the link is not true of a used one.
  document.querySelector('footer').hidden = id === 'done'
  document.title = title
  heading.focus()
}

button.addEventListener('click', openDialog)
document.getElementById('again').addEventListener('click', () => location.reload())
// From the history: the link may have been used since.
addEventListener('pageshow', (event) => event.persisted && location.reload())

/** The page was loaded anew while the number was being connected: the same question again goes on where that came to. */
function goOn(body) {
  isBusy = true
  say(connecting)
  void complete(body)
}

const left = walk.get()
if (left) goOn(left)
else {
  say('Loading …')
  void ready()
}
