import { expect, test } from 'vitest'
import { rename } from './rename.ts'

const ana = {
  phoneNumber: '+15550123456',
  waId: '15550123456',
  bsuid: 'US.1',
  parentBsuid: 'US.ENT.1',
  username: null,
  name: 'Ana',
}
const nothing = { wa_id: null, bsuid: null, parent_bsuid: null }

test('a user id that is issued anew without a word of its parent keeps the one that is known', () => {
  const change = { previous: { ...nothing, bsuid: 'US.1' }, current: { ...nothing, bsuid: 'US.2' } }
  expect(rename(ana, change)).toEqual({ ...ana, bsuid: 'US.2' })
})

test('a user id that is told without the one before takes the place of any; another one’s takes none', () => {
  const current = { ...nothing, bsuid: 'US.3', parent_bsuid: 'US.ENT.3' }
  expect(rename(ana, { previous: nothing, current })).toEqual({ ...ana, bsuid: 'US.3', parentBsuid: 'US.ENT.3' })
  expect(rename(ana, { previous: { ...nothing, bsuid: 'US.2' }, current })).toEqual(ana)
})
