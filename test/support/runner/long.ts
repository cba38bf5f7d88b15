/** The tag of tests that take more than a few seconds by themselves: `npm test` leaves them to `npm run test:long`. */
export const LONG = 'long';
