import { join } from 'node:path'
import type { Demo } from './demo.ts'

/** What a person reads when the stack is ready: addresses, the key, and commands to paste. */
export function summaryOf(publicUrl: string, simulatorUrl: string, dataDir: string, demo: Demo): string {
  const base = `${publicUrl}/v1`
  const authorization = `-H 'Authorization: Bearer ${demo.api_key}'`
  const post = (path: string, body: unknown) =>
    `curl -s ${base}${path} ${authorization} \\\n    -H 'Content-Type: application/json' -d '${JSON.stringify(body)}'`
  const text = {
    messaging_product: 'chat',
    to: demo.contact.phone_number,
    type: 'text',
    text: { body: 'Hello from the demo' },
  }
  const subscription = { url: 'http://127.0.0.1:9000/', events: ['message.received', 'message.status'] }
  return `
  Base URL   ${base}
  API key    ${demo.api_key}
  Number     ${demo.phone_number_id}
  Contact    ${demo.contact.phone_number}, who has just written in

Send the contact a text:
  ${post(`/${demo.phone_number_id}/messages`, text)}

List the messages:
  curl -s ${base}/${demo.phone_number_id}/messages ${authorization}

Watch what is sent, and answer as the contact, in a browser:
  ${simulatorUrl}/

Have events sent to a program of yours (here on port 9000):
  ${post('/webhook_subscriptions', subscription)}

Logs are in ${join(dataDir, 'logs')}, all addresses in ${join(dataDir, 'stack.json')}. Ctrl-C stops everything.
`
}
