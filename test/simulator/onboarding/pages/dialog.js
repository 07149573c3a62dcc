const query = new URLSearchParams(location.search)
const target = query.get('opener') ?? '*'
const form = document.getElementById('form')
const trouble = document.getElementById('trouble')
/** A second click would make a second number. */
let isBusy = false

/** As the real dialog does: JSON as text. */
function tell(event, data) {
  window.opener?.postMessage(JSON.stringify({ type: 'WA_EMBEDDED_SIGNUP', event, version: 3, data }), target)
}

function end(code) {
  window.opener?.postMessage({ type: 'SIMULATOR_LOGIN', code }, target)
  window.close()
  // A window that no page has opened stays.
  trouble.value = 'Done: you can close this window.'
}

async function list() {
  const { data } = await (await fetch('/signup/numbers')).json()
  for (const { phone_number_id: id, name, display_phone_number: display, status } of data) {
    const label = document.createElement('label')
    const radio = Object.assign(document.createElement('input'), { type: 'radio', name: 'choice', value: id })
    label.append(radio, ` ${display} (${name}, ${status})`)
    document.getElementById('numbers').append(label)
  }
}

async function finish() {
  if (isBusy) return
  isBusy = true
  trouble.value = ''
  try {
    const { event: name, code, data } = await choose()
    tell(name, data)
    end(code)
  } catch (err) {
    trouble.value = `That did not work: ${err.message} Please try again.`
  } finally {
    isBusy = false
  }
}

async function choose() {
  const choice = new FormData(form).get('choice')
  const body = /^\d+$/.test(choice) ? { choice: 'number', phone_number_id: choice } : { choice }
  const options = { method: 'POST', body: JSON.stringify(body) }
  const answer = await fetch('/signup/finish', options).catch(() => {
    throw new Error('the simulator does not answer.')
  })
  const told = await answer.json()
  if (!answer.ok) throw new Error(told.error.message)
  return told
}

form.addEventListener('submit', (event) => {
  event.preventDefault()
  void finish()
})
document.getElementById('cancel').addEventListener('click', () => {
  tell('CANCEL', { current_step: 'PHONE_NUMBER_SETUP' })
  end(null)
})
document.getElementById('error').addEventListener('click', () => {
  tell('ERROR', { error_message: 'Your number is already in use elsewhere.', error_code: '524126' })
  end(null)
})
void list()
