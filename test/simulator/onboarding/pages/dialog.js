const query = new URLSearchParams(location.search)
const target = query.get('opener') ?? '*'
const form = document.getElementById('form')

/** As the real dialog does: JSON as text. */
function tell(event, data) {
  window.opener?.postMessage(JSON.stringify({ type: 'WA_EMBEDDED_SIGNUP', event, version: 3, data }), target)
}

function end(code) {
  window.opener?.postMessage({ type: 'SIMULATOR_LOGIN', code }, target)
  window.close()
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
  const choice = new FormData(form).get('choice')
  const body = /^\d+$/.test(choice) ? { choice: 'number', phone_number_id: choice } : { choice }
  const answer = await fetch('/signup/finish', { method: 'POST', body: JSON.stringify(body) })
  const { event: name, code, data } = await answer.json()
  tell(name, data)
  end(code)
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
