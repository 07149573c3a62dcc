const trouble = document.getElementById('trouble')

export const tellAway = () => {
  trouble.value = 'The simulator does not answer. What you write stays here: try again when it runs.'
}

export const tellThere = () => {
  trouble.value = ''
}

/** Whether it was done. */
async function control(path, body) {
  try {
    const response = await fetch(`/control/${path}`, { method: 'POST', body: JSON.stringify(body) })
    const answer = await response.json()
    trouble.value = response.ok ? '' : `${answer.error.field}: ${answer.error.message}`
    return response.ok
  } catch {
    tellAway()
    return false
  }
}

/** The person of a chat writes; `name` is what their profile says from then on. */
export function write({ number, person }, message, name) {
  const contact = name ? { contact: { profile: { name } } } : {}
  const from = /^\d+$/.test(person) ? { from: person } : { from_user_id: person }
  return control('inbound', { phone_number_id: number, message: { ...from, ...message }, ...contact })
}

/** The person reads or plays what was sent. */
export const tell = (entry, status) =>
  control('callbacks', { kind: 'status', phone_number_id: entry.number, message_id: entry.id, status })
