import { isDeepStrictEqual } from 'node:util'
import type { AccountState } from '../accounts/account-states.ts'
import type { Law } from './rival-history.ts'

/** One row for each number of an organization, in the order of their events. */
const linesOf = (states: AccountState[]) => [...Map.groupBy(states, (state) => state.account_id).values()]

/** Each state with the one that was told before it. */
const stepsOf = (states: AccountState[]) =>
  linesOf(states).flatMap((line) => line.slice(1).map((after, n) => ({ before: line[n] as AccountState, after })))

const versionsRise: Law = ({ states }) =>
  stepsOf(states)
    .filter(({ before, after }) => after.version <= before.version)
    .map(({ before, after }) => `${after.account_id}: version ${after.version} after ${before.version}`)

const nothingIsToldTwice: Law = ({ states }) =>
  stepsOf(states)
    .filter(({ before, after }) => isDeepStrictEqual({ ...before, version: 0 }, { ...after, version: 0 }))
    .map(({ after }) => `told again: ${JSON.stringify(after)}`)

const theLastIsTrue: Law = ({ states, end }) => {
  const last = new Map(states.map((state) => [state.account_id, state]))
  return end.states
    .filter((state) => !isDeepStrictEqual(state, last.get(state.account_id)))
    .map((state) => `is ${JSON.stringify(state)}, told as ${JSON.stringify(last.get(state.account_id))}`)
}

/** A version is one state, whoever is told of it and however. */
const othersAreToldTheSame: Law = ({ states, passedOn }) => {
  const byVersion = new Map(states.map((state) => [`${state.account_id} ${state.version}`, state]))
  return Object.entries(passedOn).flatMap(([service, told]) =>
    told.flatMap((state) => {
      const event = byVersion.get(`${state.account_id} ${state.version}`)
      if (isDeepStrictEqual(state, event)) return []
      return `${service} was told ${JSON.stringify(state)}, the event tells ${JSON.stringify(event)}`
    }),
  )
}

/** Those of whom something may be sent: of a number that was given up the event is soon enough. */
const othersAreToldTheNewest: Law = ({ passedOn, end }) =>
  Object.entries(passedOn).flatMap(([service, told]) =>
    end.states
      .filter((state) => state.attached && !told.some((one) => isDeepStrictEqual(one, state)))
      .map((state) => `${service} was not told ${JSON.stringify(state)}`),
  )

/** Nobody is told that a number is connected before they are told that the one who had it has it no longer. */
const oneHasANumber: Law = ({ states }) => {
  const holders = new Map<string, string>()
  const problems: string[] = []
  for (const { account_id: id, phone_number_id: number, attached } of states) {
    const holder = holders.get(number)
    if (attached && holder !== undefined && holder !== id) problems.push(`${number} is of ${holder} and of ${id}`)
    if (attached) holders.set(number, id)
    else if (holder === id) holders.delete(number)
  }
  return problems
}

export const numberLaws: Record<string, Law> = {
  'versions of a number rise': versionsRise,
  'no state of a number is told twice': nothingIsToldTwice,
  'what was told of a number last is what it is': theLastIsTrue,
  'messaging and directory are told of a number what its events tell': othersAreToldTheSame,
  'messaging and directory are told the newest of a connected number': othersAreToldTheNewest,
  'a number is of one organization at a time': oneHasANumber,
}
