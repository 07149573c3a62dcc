import { expect, test } from 'vitest'
import { mostRows, plansIn, scannedTables } from './plans.ts'

const log = `2026-03-01 12:00:00.000 UTC [41] svc_directory LOG:  duration: 0.042 ms  plan:
	{
	  "Query Text": "select id\\nfrom contacts",
	  "Plan": {
	    "Node Type": "Limit", "Actual Rows": 26, "Actual Loops": 1,
	    "Plans": [
	      {"Node Type": "Seq Scan", "Relation Name": "contacts", "Actual Rows": 26, "Actual Loops": 2, "Rows Removed by Filter": 974},
	      {"Node Type": "Seq Scan", "Relation Name": "accounts", "Actual Rows": 1, "Actual Loops": 1}
	    ]
	  }
	}
2026-03-01 12:00:00.001 UTC [42] svc_directory LOG:  process 42 still waiting for ShareLock
2026-03-01 12:00:00.002 UTC [43] postgres LOG:  duration: 1.5 ms  plan:
	{
	  "Query Text": "select 1",
	  "Plan": {"Node Type": "Result", "Actual Rows": 1, "Actual Loops": 1}
	}
`

test('reads the plans in a log, with what each step read', () => {
  const plans = plansIn(log)
  expect(plans).toMatchObject([
    { role: 'svc_directory', statement: 'select id\nfrom contacts' },
    { role: 'postgres', statement: 'select 1', steps: [{ kind: 'Result', table: null, rows: 1 }] },
  ])
  expect(mostRows(plans)).toBe(2000)
  expect(mostRows([])).toBe(0)
})

test('tells tables that were read in sequence, but not the little ones', () => {
  const [plan] = plansIn(log)
  expect(plan && scannedTables(plan, 1000)).toEqual(['contacts'])
  expect(plan && scannedTables(plan, 2001)).toEqual([])
  expect(plan && scannedTables(plan, 1)).toEqual(['contacts', 'accounts'])
})
