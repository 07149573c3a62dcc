import { createHoldings, mostHeld } from '../work/holdings.ts'

/** What a process works on, by whose it is; '' is nobody's in particular. */
export interface InWork {
  /** Null when there is too much; else what is to be called at its end. */
  begin: (owner: string, bytes: number) => (() => void) | null
}

/**
 * An organization has no more in work than is left for others: several gateways may each ask as much for it as they bear, and
 * together they would fill a service that others need.
 */
export function createInWork(): InWork {
  const { all, of, add } = createHoldings()
  return {
    begin(owner, bytes) {
      const own = owner === '' ? { count: 0, bytes: 0 } : of(owner)
      if (own.count >= mostHeld.count - all.count || own.bytes + bytes > mostHeld.bytes - all.bytes) return null
      add(owner, 1, bytes)
      return () => add(owner, -1, -bytes)
    },
  }
}
