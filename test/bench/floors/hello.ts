import fastify from 'fastify'
import { answerParent } from '../child.ts'

/** The least that a fastify endpoint costs. */
async function start() {
  const http = fastify()
  const schema = { response: { 200: { type: 'object', properties: { hello: { type: 'string' } } } } }
  http.get('/', { schema }, () => ({ hello: 'world' }))
  return { url: await http.listen({ host: '127.0.0.1', port: 0 }) }
}

const commands = { start }
export type Hello = typeof commands
answerParent(commands)
