/** The tag of tests that try to break in, to starve others or to mislead: `npm run attacks` runs them alone, and names each. */
export const ATTACK = 'attack';
