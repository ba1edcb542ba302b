export { isCidr, type AddressPolicyOptions } from './address-policy.ts'
export { EgressError } from './egress-error.ts'
export {
  createEgress,
  type Egress,
  type EgressResponse,
  type EgressCall,
  type EgressConnection,
  type EgressOptions,
  type Tunnel,
} from './egress.ts'
export { tracedEgress } from './traced-egress.ts'
