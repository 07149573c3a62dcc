import { randomUUID } from 'node:crypto'
import fastify from 'fastify'
import { z } from 'zod'

const Send = z.object({
  messaging_product: z.literal('chat'),
  to: z.string().regex(/^\+\d{6,15}$/),
  type: z.literal('text'),
  text: z.object({ body: z.string().min(1).max(4096) }),
})

const text = { type: 'string' } as const
const answer = {
  type: 'object',
  properties: {
    data: {
      type: 'object',
      properties: { id: text, object: text, to: text, type: text, status: text, created_at: text },
    },
    request_id: text,
  },
} as const

/** A message that was asked for. */
export interface Taken {
  id: string
  number: string
  recipient: string
  text: { body: string }
  createdAt: Date
}

/** Sends over HTTP as one would write it, fastify and zod; answers when `take` has. */
export function createIntake(take: (message: Taken) => Promise<unknown>) {
  const http = fastify({ genReqId: () => randomUUID() })
  http.post<{ Params: { number: string } }>(
    '/v1/:number/messages',
    { schema: { response: { 200: answer } } },
    async (request, reply) => {
      const body = Send.safeParse(request.body)
      if (!body.success) return reply.code(400).send(body.error)
      const { to, type, text } = body.data
      const createdAt = new Date()
      const id = `msg_${randomUUID()}`
      await take({ id, number: request.params.number, recipient: to, text, createdAt })
      const data = { id, object: 'message', to, type, status: 'queued', created_at: createdAt.toISOString() }
      return { data, request_id: request.id }
    },
  )
  return http
}
