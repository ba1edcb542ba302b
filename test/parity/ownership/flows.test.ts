// Ownership of fields, as a real kube-apiserver and a logical cluster tell it: objects and managedFields, byte for
// byte.
import { compareRows } from '#test/parity/support/compare-rows.ts'
import { customFlowRows } from './custom-flows.ts'
import { flowRows } from './flows.ts'

describe('ownership of fields as a real server has it', function () {
  this.timeout(180_000)
  compareRows([...flowRows, ...customFlowRows], {
    name: 'ownership',
    known: {
      'custom: the last item of a list goes':
        'upstream leaves null for the list and refuses the apply with 422, because a list may not be null; ours leaves no list',
    },
  })
})
