// Compares CustomResourceDefinitions and custom resources on a real kube-apiserver and in a logical cluster.
import { compareRows } from '#test/parity/support/compare-rows.ts'
import { definitionRows } from './definitions.ts'
import { knownDefinitionDifferences, knownLifeDifferences, knownObjectDifferences } from './known-differences.ts'
import { lifeRows } from './life.ts'
import { objectRows } from './objects.ts'

describe("custom resources equal a real server's", function () {
  this.timeout(180_000) // includes the start of both servers and the rows that mostly wait
  compareRows([...definitionRows, ...objectRows, ...lifeRows], {
    name: 'crds',
    known: { ...knownDefinitionDifferences, ...knownObjectDifferences, ...knownLifeDifferences },
    // A real server waits two seconds before it creates the first object of a new definition.
    ahead: new Set(lifeRows),
  })
})
