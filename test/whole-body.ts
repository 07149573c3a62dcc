import type { IncomingMessage } from 'node:http'

/** The body of a request when all of it has come: never, when its client hangs up before. */
export const wholeBody = (request: IncomingMessage): Promise<Buffer> =>
  new Promise((resolve) => {
    const chunks: Buffer[] = []
    request.on('error', () => {})
    request.on('data', (chunk: Buffer) => chunks.push(chunk))
    request.on('end', () => resolve(Buffer.concat(chunks)))
  })
