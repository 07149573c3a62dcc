import type { Caller } from '@app/shared/api/contract.ts'
import { Problem } from '@app/shared/api/problem.ts'
import type { Bus } from '../stack/bus.ts'

/** Who asks the services, and how. */
export interface Asking {
  bus: Bus
  caller: Caller
}

/** Null for what is not there. */
export async function orNull<T>(asked: Promise<T>): Promise<T | null> {
  try {
    return await asked
  } catch (err) {
    if (err instanceof Problem && err.status === 404) return null
    throw err
  }
}
