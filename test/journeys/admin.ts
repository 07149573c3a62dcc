import { answerCommand } from '@app/deploy/administration/answer.ts'
import { readBusPlace } from '@app/deploy/stack/stack-file.ts'
import { Problem } from '@app/shared/api/problem.ts'
import { newId } from '@app/shared/values/ids.ts'
import { inject } from 'vitest'
import type { Json } from './client.ts'

/** What `npm run admin -- …` answers of the stack of the run. A process for each of hundreds would cost more than all that they do. */
export const admin = (...args: string[]): Promise<Json> => adminOf(inject('stackDir'))(...args)

/** The same of the stack of a data folder. */
export const adminOf =
  (dataDir: string) =>
  async (...args: string[]): Promise<Json> => {
    const requestId = newId('req')
    try {
      const answer = await answerCommand(args, requestId, () => {
        const place = readBusPlace(dataDir)
        if (!place) throw new Error(`No stack runs in ${dataDir}.`)
        return place
      })
      return JSON.parse(JSON.stringify(answer))
    } catch (err) {
      const told = err instanceof Problem ? JSON.stringify(err.toEnvelope(requestId)) : String(err)
      throw new Error(`admin ${args.join(' ')}: ${told}`, { cause: err })
    }
  }
