// Compares errors in the status of custom resources, and schemas with unknown keywords.
import { compareRows } from '#test/parity/support/compare-rows.ts'
import { schemaRows } from './schemas.ts'

describe("schemas and errors of a status equal a real server's", function () {
  this.timeout(180_000)
  compareRows(schemaRows, { name: 'schemas', ahead: new Set(schemaRows) })
})
