import { GraphError } from '../graph/graph-error.ts'

/** A refusal of the management API: what people read stands in the two user texts, which programs must not match. */
export const templateError = (subcode: number | undefined, userTitle: string, userMessage: string) =>
  new GraphError(100, { message: 'Invalid parameter', subcode, userTitle, userMessage })

/** The subcodes of 100 that the platform is known to use. */
export const subcodes = {
  quota: 2388019,
  nameIsHeld: 2388023,
  exists: 2388024,
  length: 2388040,
  header: 2388047,
  body: 2388072,
  footer: 2388073,
  tooManyVariables: 2388293,
  variableAtTheEdge: 2388299,
  notFound: 2593002,
} as const
