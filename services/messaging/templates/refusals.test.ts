import { expect, test } from 'vitest'
import { UpstreamRefusal } from '../upstream/ask-upstream.ts'
import { refusalOf } from './refusals.ts'

const components = ['body', 'HEADER', 'FOOTER'].map((type) => ({ type }))

test.each([
  [2388047, 'components[1]'],
  [2388072, 'components[0]'],
  [2388073, 'components[2]'],
  [2388293, 'components[0]'],
  [2388299, 'components[0]'],
  [2388019, undefined],
])('the refusal %i names the component that it is about', (subcode, param) => {
  const err = new UpstreamRefusal(400, 100, subcode, 'No.')
  expect(refusalOf(err, components)).toMatchObject({ failure: 'invalid_field_value', param })
  expect(refusalOf(err, [])).toMatchObject({ failure: 'invalid_field_value', param: undefined })
  expect(refusalOf(err)).toMatchObject({ failure: 'upstream_refused', param: undefined })
})

test.each([2388023, 2388024])('the refusal %i tells that the name is taken', (subcode) => {
  const taken = { failure: 'template_already_exists', param: 'name' }
  expect(refusalOf(new UpstreamRefusal(400, 100, subcode, 'No.'), components)).toMatchObject(taken)
})

test('a token that is taken no more is no fault of a field', () => {
  const err = new UpstreamRefusal(401, 190, undefined, 'No.')
  expect(refusalOf(err, components)).toMatchObject({ failure: 'upstream_refused', param: undefined })
})
