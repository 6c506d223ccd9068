// Whether runs of one piece of work agree, by numbers that are given: no clock decides a test.
#include "tools/headlight/support/repeated_times.h"

#include <gtest/gtest.h>

namespace headlight::test::repeated_times_test {

program::RepeatedTimes times_of(std::initializer_list<double> seconds) {
  program::RepeatedTimes times;
  for (const double one : seconds) times.add(one);
  return times;
}

TEST(RepeatedTimes, HaveABestAndAMiddle) {
  const program::RepeatedTimes times = times_of({0.3, 0.1, 0.2});
  EXPECT_EQ(times.best(), 0.1);
  EXPECT_EQ(times.middle(), 0.2);
  EXPECT_EQ(times_of({}).best(), 0);
  EXPECT_EQ(times_of({}).middle(), 0);
}

TEST(RepeatedTimes, DisagreeWhenHalfTookHalfAsLongAgain) {
  EXPECT_FALSE(times_of({}).disagree());
  EXPECT_FALSE(times_of({1, 9}).disagree()) << "two tell nothing";
  EXPECT_FALSE(times_of({1, 1.1, 9}).disagree()) << "one that had company";
  EXPECT_FALSE(times_of({1, 1.2, 1.4, 1.4, 1.45}).disagree());
  EXPECT_TRUE(times_of({1, 1.5, 1.6}).disagree());
  EXPECT_TRUE(times_of({2, 1, 1, 2, 2}).disagree());
  EXPECT_EQ(program::note_of_busy(false), "");
  EXPECT_NE(program::note_of_busy(true).find("The machine was busy"), std::string::npos);
}

}  // namespace headlight::test::repeated_times_test
